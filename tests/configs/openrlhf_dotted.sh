set -x
python3 -m openrlhf.cli.train_ppo_ray \
   --actor.model_name_or_path Qwen/Qwen3-4B-Thinking-2507 \
   --actor.num_nodes 1 --actor.num_gpus_per_node 4 \
   --ref.num_nodes 1 --ref.num_gpus_per_node 4 \
   --vllm.num_engines 2 --vllm.tensor_parallel_size 2 \
   --vllm.gpu_memory_utilization 0.7 \
   --data.max_len 74240 --rollout.max_new_tokens 64000 \
   --rollout.batch_size 128 --rollout.n_samples_per_prompt 8 \
   --rollout.vllm_generate_batch_size 160 \
   --train.batch_size 1024 --train.max_epochs 1 \
   --train.async_enable --train.async_queue_size 2 \
   --train.partial_rollout_enable --train.colocate_all \
   --algo.dynamic_filtering_enable --algo.dynamic_filtering_range 0.0 1.0
