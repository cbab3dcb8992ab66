ENGINE_ARGS=(
   --async_train
   --async_queue_size 1
   --actor_num_nodes 1
   --actor_num_gpus_per_node 4
   --vllm_num_engines 2
   --vllm_tensor_parallel_size 2
)
ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --pretrain Qwen/Qwen3-8B \
   --prompt_max_len 1024 --generate_max_len 8192 \
   --rollout_batch_size 128 --n_samples_per_prompt 8 \
   --train_batch_size 256 \
   ${ENGINE_ARGS[@]}
