#!/bin/bash
ROLLOUT_ARGS=(
   --rollout-function-path miles.rollout.fully_async_rollout.generate_rollout_fully_async
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-prompt-len 4096
   --rollout-max-response-len 32768
   --num-steps-per-rollout 1
   --max-weight-staleness 3
   --async-max-concurrent-samples 768
)
python3 train_async.py \
   --hf-checkpoint /models/GLM-4.7-Flash \
   --actor-num-nodes 2 --actor-num-gpus-per-node 8 \
   --rollout-num-gpus 16 --rollout-num-gpus-per-engine 2 \
   "${ROLLOUT_ARGS[@]}"
