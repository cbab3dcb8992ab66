python3 -m verl.experimental.one_step_off_policy.main_ppo \
    --config-name='one_step_off_ppo_trainer.yaml' \
    data.train_batch_size=1152 \
    data.max_prompt_length=512 data.max_response_length=1024 \
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
    actor_rollout_ref.actor.ppo_mini_batch_size=192 \
    actor_rollout_ref.rollout.n=5 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    trainer.nnodes=1 trainer.n_gpus_per_node=6 \
    rollout.nnodes=1 rollout.n_gpus_per_node=2 "$@"
