from tinker_cookbook.recipes.math_rl.math_env import Gsm8kDatasetBuilder
from tinker_cookbook.rl import train


def build_config() -> train.Config:
    model_name = "meta-llama/Llama-3.1-8B"
    builder = Gsm8kDatasetBuilder(batch_size=128, group_size=16, model_name_for_tokenizer=model_name)
    return train.Config(
        model_name=model_name,
        dataset_builder=builder,
        max_tokens=2048,
        async_config=train.AsyncConfig(max_steps_off_policy=4, groups_per_batch=128),
        stream_minibatch_config=train.StreamMinibatchConfig(groups_per_batch=128, num_minibatches=4),
    )
