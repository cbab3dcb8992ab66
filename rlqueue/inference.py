"""How fast a replica decodes and prefills: a roofline over weights, KV cache and compute.

Compiled, since both the closed form and the simulation call it in their innermost loops.
"""

from numba import njit


@njit(cache=True, inline="always")
def touched_ratio(active, miss):
    """Share of the routed experts' weights that one iteration reads: ``1 - miss**active``.

    ``miss = 1 - experts_per_token / experts``: the chance that one token passes an expert by (experts drawn evenly).
    A dense LLM has no routed experts, and the share multiplies nothing.
    """
    return 1.0 - miss**active


@njit(cache=True, inline="always")
def iteration_s(active, context_tokens, overhead_s, shared_s, experts_s, miss, kv_s_per_token, compute_s):
    """Time of one decode iteration of a replica [s].

    ``overhead + max(shared + experts * touched(k) + k * c * kv, k * compute)``: the weights and the KV cache are read once,
    and each of the k active requests gains one token (times the accept length).

    Args:
        active: requests in the batch, k. context_tokens: their mean context, c [token].
        overhead_s: fixed time. shared_s: reading the weights outside routed experts; experts_s: reading all routed experts.
        miss: chance that a token passes an expert by. kv_s_per_token: reading one token's KV cache.
        compute_s: forward pass of one token. All [s], at the calibrated efficiency.

    Source: roofline of Williams et al. (2009) applied to decoding, as in the PipelineRL paper's appendix A.
    """
    read = shared_s + experts_s * touched_ratio(active, miss) + active * context_tokens * kv_s_per_token
    compute = active * compute_s
    return overhead_s + (max(compute, read))
