"""GPUs: nodes, device lists, parallelism words, and a pool that both sides share."""

import re
from collections.abc import Sequence
from typing import Any

from rlqueue.frameworks.arithmetic import ranged

_PARALLEL = re.compile(r"([a-z]+)(\d{1,6})")
_IN_GPUS = {"d", "p", "t", "m", "c"}
_IN_REPLICA = {"p", "t", "m"}


def same(value: Any) -> Any:
    """as given."""
    return value


def product(first: float, second: float, third: float | None = None) -> float:
    """the product of the keys."""
    return first * second * (1 if third is None else third)


def replica(tensor_parallel: float, data_parallel: float | None = None, pipeline: float | None = None) -> float:
    """gpus_per_replica = tensor * data * pipeline parallel size of one engine."""
    return tensor_parallel * (data_parallel or 1) * (pipeline or 1)


def devices(device_mapping: str | Sequence[int]) -> int | None:
    """the number of devices in the list.

    ROLL writes ``list(range(0,16))``, or ``list(range(0,8)) + list(range(16,24))``; neither is evaluated as Python.
    """
    if isinstance(device_mapping, str):
        ranges = [ranged(part) for part in device_mapping.split("+")]
        if any(each is None for each in ranges):
            return None
        return sum(len(each) for each in ranges if each is not None)
    return len(device_mapping) if isinstance(device_mapping, Sequence) else None


def disaggregated_gpus(prefill_nodes: float, decode_nodes: float, gpus_per_node: float, replicas: float = 1) -> float:
    """(prefill_nodes_per_replica + decode_nodes_per_replica) * gpus_per_node * num_infer_replicas."""
    return (prefill_nodes + decode_nodes) * gpus_per_node * replicas


def nodes_and_gpus(gpus_per_node: float, num_nodes: float | None = None) -> float:
    """num_nodes * gpus_per_node, one node where none is named.

    Source: nemo_rl/algorithms/grpo.py: on a cluster of one node only ``gpus_per_node`` is set.
    """
    return (num_nodes or 1) * gpus_per_node


def rest_of_cluster(num_nodes: float, gpus_per_node: float, generator_gpus: float) -> float:
    """trainer_gpus = cluster.num_nodes * cluster.gpus_per_node - generator_gpus."""
    return num_nodes * gpus_per_node - generator_gpus


def share_of_pool(gpus: float, part: float, actor: float, preprocessor: float, finetune: float) -> float | None:
    """GPUs * fraction / (actor + preprocessor + finetune), rounded.

    Source: pipelinerl/world.py, the split of a pool by ``world.*_fraction``.
    """
    whole = actor + preprocessor + finetune
    return max(1, round(gpus * part / whole)) if whole > 0 else None


def generating_part_of_pool(pool: float, gpus_per_replica: float) -> float:
    """generator_gpus of a shared pool: half of it, in whole replicas, and one replica at least.

    In the colocated schedule all of ``trainer_gpus + generator_gpus`` generate and then train, so only the sum counts.
    """
    return max(gpus_per_replica, pool // 2 // gpus_per_replica * gpus_per_replica)


def training_part_of_pool(pool: float, gpus_per_replica: float) -> float:
    """trainer_gpus of a shared pool: what is not counted as the generator's, and one GPU at least."""
    return max(1, pool - generating_part_of_pool(pool, gpus_per_replica))


def backend_gpus(backend: str) -> int | None:
    """GPUs of a backend such as sglang:d4t8: the product of its d, p, t (m, c) sizes.

    Of ``megatron:(attn:d1p12t4|ffn:d1p12e4)`` the attention part counts: both parts tile the same GPUs.
    Source: areal/api/alloc_mode.py.
    """
    sizes = _sizes(backend)
    return _product(sizes, _IN_GPUS) if sizes else None


def backend_replica(backend: str) -> int | None:
    """gpus_per_replica of a backend such as sglang:d4t8: p * t (or m)."""
    sizes = _sizes(backend)
    return _product(sizes, _IN_REPLICA) if sizes else None


def allocation_trainer_gpus(allocation_mode: str) -> int | None:
    """GPUs after the + of allocation_mode, such as sglang.d16p1m1+d8p2m1."""
    return backend_gpus(allocation_mode.split("+", 1)[1]) if "+" in allocation_mode else None


def allocation_generator_gpus(allocation_mode: str) -> int | None:
    """GPUs before the + of allocation_mode, such as sglang.d16p1m1+d8p2m1."""
    return backend_gpus(allocation_mode.split("+", 1)[0]) if "+" in allocation_mode else None


def allocation_replica(allocation_mode: str) -> int | None:
    """gpus_per_replica: p * t (or m) before the + of allocation_mode."""
    return backend_replica(allocation_mode.split("+", 1)[0])


def _sizes(backend: str) -> dict[str, int]:
    words = str(backend)[:200].replace("(", "").split("|", 1)[0]
    last = re.split(r"[:.]", words)[-1].strip(") ")
    found = _PARALLEL.findall(last)
    return {letter: int(size) for letter, size in found} if "".join(map("".join, found)) == last else {}


def _product(sizes: dict[str, int], letters: set[str]) -> int:
    product_of_sizes = 1
    for letter in letters:
        product_of_sizes *= sizes.get(letter, 1)
    return product_of_sizes


def whole_nodes(gpus: float, others: float, gpus_per_node: float) -> float | None:
    """GPUs / GPUs per node, where both sides are whole nodes."""
    return gpus // gpus_per_node if gpus % gpus_per_node == 0 == others % gpus_per_node else None


def loose_gpus(gpus: float, others: float, gpus_per_node: float) -> float | None:
    """GPUs as they are, where one of the sides is no whole number of nodes."""
    return None if gpus % gpus_per_node == 0 == others % gpus_per_node else gpus


def node_count(gpus: float, gpus_per_node: float) -> float:
    """nodes = GPUs / GPUs of a node, or 1."""
    return gpus // gpus_per_node if gpus % gpus_per_node == 0 else 1


def gpus_of_a_node(gpus: float, gpus_per_node: float) -> float:
    """GPUs of one node, or all of them where they fill no whole number of nodes."""
    return gpus_per_node if gpus % gpus_per_node == 0 else gpus


def shared_node_gpus(trainer_gpus: float, generator_gpus: float, gpus_per_node: float) -> float:
    """the largest number of GPUs per node that divides both sides and is <= GPUs of a node."""
    return next(n for n in range(int(gpus_per_node), 0, -1) if trainer_gpus % n == 0 == generator_gpus % n)


def cluster_nodes(trainer_gpus: float, generator_gpus: float, gpus_per_node: float) -> float:
    """(trainer_gpus + generator_gpus) / GPUs per node that divides both."""
    return (trainer_gpus + generator_gpus) // shared_node_gpus(trainer_gpus, generator_gpus, gpus_per_node)


def generator_nodes(trainer_gpus: float, generator_gpus: float, gpus_per_node: float) -> float:
    """generator_gpus / GPUs per node that divides both."""
    return generator_gpus // shared_node_gpus(trainer_gpus, generator_gpus, gpus_per_node)


def rollout_backend(generator_gpus: float, gpus_per_replica: float) -> str:
    """sglang:d{replicas}t{gpus_per_replica}."""
    return f"sglang:d{generator_gpus // gpus_per_replica:g}t{gpus_per_replica:g}"


def actor_backend(trainer_gpus: float) -> str:
    """fsdp:d{trainer_gpus}: the split of the trainer's GPUs is yours to keep."""
    return f"fsdp:d{trainer_gpus:g}"


def shared_devices(device_mapping: str | Sequence[int], schedule: str) -> int | None:
    """GPUs of a pool that trains and generates, where it does both."""
    return devices(device_mapping) if schedule == "colocated-sync" else None


def deployment_type(trainer_gpus: float, generator_gpus: float, gpus_per_node: float) -> str:
    """multi_node where both sides are whole nodes, else single_node."""
    whole = whole_nodes(trainer_gpus, generator_gpus, gpus_per_node)
    return "single_node" if whole is None else "multi_node"


def gpus_per_node(trainer_gpus: float, generator_gpus: float, gpus_of_node: float) -> float | None:
    """GPUs of a node, where both sides are whole nodes."""
    return gpus_of_node if whole_nodes(trainer_gpus, generator_gpus, gpus_of_node) is not None else None


def apart_gpus(schedule: str, generator_gpus: float) -> float | None:
    """generator_gpus, where they are not the trainer's own."""
    return None if schedule == "colocated-sync" else generator_gpus


def _divided(generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float) -> bool:
    """Whether each replica prefills on nodes of its own, and all there is are whole nodes and replicas."""
    whole = all(gpus % gpus_per_node == 0 for gpus in (trainer_gpus, prefill, replica))
    return 0 < prefill < replica and whole and generator_gpus % replica == 0


def infer_nodes(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> float | None:
    """GPUs / GPUs per node where both sides are whole nodes, of one replica where it prefills on its own nodes."""
    if _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node):
        return replica // gpus_per_node
    return whole_nodes(generator_gpus, trainer_gpus, gpus_per_node)


def infer_replicas(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> float | None:
    """generator_gpus / gpus_per_replica, where a replica prefills on its own nodes."""
    return (
        generator_gpus // replica if _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node) else None
    )


def divided_replica(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> str | None:
    """disaggregated, where a replica prefills on its own nodes."""
    return "disaggregated" if _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node) else None


def prefill_nodes(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> float | None:
    """prefill_gpus_per_replica / GPUs per node, where these are whole nodes."""
    return prefill // gpus_per_node if _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node) else None


def decode_nodes(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> float | None:
    """(gpus_per_replica - prefill_gpus_per_replica) / GPUs per node, where these are whole nodes."""
    divided = _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node)
    return (replica - prefill) // gpus_per_node if divided else None


def undivided_replica(
    generator_gpus: float, trainer_gpus: float, replica: float, prefill: float, gpus_per_node: float
) -> float | None:
    """gpus_per_replica, where prefill and decode share it."""
    return None if _divided(generator_gpus, trainer_gpus, replica, prefill, gpus_per_node) else replica
