"""How to split the GPUs: the best plan for a goal within limits, narrowed by closed form and decided by simulation."""

from rlqueue.planning.goal import OBJECTIVES, Goal, Limits
from rlqueue.planning.grid import Space
from rlqueue.planning.planner import Plan, plan
from rlqueue.planning.words import as_object, sentences

__all__ = ["OBJECTIVES", "Goal", "Limits", "Plan", "Space", "as_object", "plan", "sentences"]
