python -m tinker_cookbook.recipes.math_rl.train \
    model_name="Qwen/Qwen3-8B" \
    env=deepmath \
    group_size=16 groups_per_batch=64 \
    learning_rate=2e-5 max_tokens=8192 \
    max_steps_off_policy=3 num_substeps=2
