"""Mixtures of experts: FLOPs follow N k, weight bytes follow the distinct experts that a pass hits.

Loads are taken as even over the devices that share experts.
"""

from __future__ import annotations

from rooflines.costs.cost import Cost, Number, Operator
from rooflines.costs.feed_forward import up_and_down
from rooflines.costs.linear import all_reduce, arithmetic_of, layer_linear, stored_bytes
from rooflines.costs.routing import distinct_experts, distinct_log_sd
from rooflines.costs.setting import Setting
from rooflines.dtypes import number_format
from rooflines.models.layer import VECTORS
from rooflines.models.spec import Layer, Matrix, MixtureOfExperts


def moe_operators(layer: Layer, block: MixtureOfExperts, setting: Setting) -> list[Operator | None]:
    """Router, exchange, routed experts and shared experts on one device."""
    tokens, hidden = setting.shape.tokens, setting.model.hidden
    named = {matrix.name: matrix for matrix in block.matrices(hidden)}
    shared = [matrix for name, matrix in named.items() if name in ("shared_gate", "shared_up", "shared_down")]

    def projected(name: str, title: str) -> list[Operator]:
        return [layer_linear(title, layer, [named[name]], tokens, setting)] if name in named else []

    return [
        *projected("router", "router"),
        *projected("latent_in", "expert latent projection"),
        _exchange("expert dispatch", block, setting),
        _routed(layer, block, [named[name] for name in named if name.startswith("expert_")], setting),
        _exchange("expert combine", block, setting),
        *projected("latent_out", "expert latent output"),
        *projected("shared_expert_gate", "shared expert gate"),
        *(up_and_down("shared expert ", layer, shared, setting) if shared else ()),
        all_reduce("feed-forward all-reduce", tokens * hidden, setting),
    ]


def _routed(layer: Layer, block: MixtureOfExperts, matrices: list[Matrix], setting: Setting) -> Operator:
    """The grouped products of the routed experts: 2 N k FLOPs a weight of one expert, D(N) experts read."""
    parallel, shape = setting.parallelism, setting.shape
    batch = shape.batch * parallel.replicas
    own, dtype = dict(layer.formats), setting.model.dtype
    formats = [number_format(own.get(matrix.name, dtype)) for matrix in matrices]
    main = max(formats, key=lambda fmt: fmt.bits)
    chosen = (setting.routing, block.experts, block.experts_per_token, batch, shape.new_tokens)
    distinct = distinct_experts(*chosen)
    assigned = batch * shape.new_tokens * block.experts_per_token / parallel.expert
    one_bytes = stored_bytes(matrices, formats, number_format(own.get(VECTORS, dtype))) / block.experts
    touched = sum(matrix.inputs + matrix.outputs for matrix in matrices)
    return Operator(
        name="routed experts",
        kind="moe",
        cost=Cost(
            matmul_flops=2.0 * sum(matrix.inputs * matrix.outputs for matrix in matrices) * assigned,
            weight_bytes=distinct * (one_bytes / parallel.expert),
            activation_bytes=assigned * touched * setting.activation_bytes,
            kernels=1.0,  # constants of this kind are those of a layer's router, permutation and products
        ),
        arithmetic=arithmetic_of(main, setting),
        storage=main.name,
        rows=assigned / (distinct / parallel.expert),
        tokens_per_expert=batch * shape.new_tokens * parallel.expert / block.experts,
        distinct_log_sd=distinct_log_sd(*chosen),
    )


def _exchange(name: str, block: MixtureOfExperts, setting: Setting) -> Operator | None:
    """Tokens to the devices of their experts, or back, where groups of devices share experts.

    In decode and verify (DeepEP's low-latency kernels) a token goes to each of its k experts; in prefill (its
    throughput kernels) once to each device that has any of them (https://github.com/deepseek-ai/DeepEP).
    """
    parallel = setting.parallelism
    if parallel.replicas == 1:  # every device of a tensor-parallel group has all tokens already
        return None
    tokens = setting.shape.tokens / parallel.tensor
    elsewhere = (parallel.expert - 1) / parallel.expert
    copies = (
        parallel.expert * _reached(block, parallel.expert)
        if setting.phase == "prefill"
        else float(block.experts_per_token)
    )
    sent: Number = tokens * copies * elsewhere * (block.latent or setting.model.hidden)
    cost = Cost(network_bytes=sent * setting.activation_bytes, kernels=1.0)
    return Operator(name, "collective", cost, ranks=parallel.expert)


def _reached(block: MixtureOfExperts, devices: int) -> float:
    """Chance that a device has any of a token's k experts: 1 - C(E - E/e, k) / C(E, k)."""
    missed = 1.0
    for drawn in range(block.experts_per_token):
        missed *= max(block.experts - block.experts / devices - drawn, 0.0) / (block.experts - drawn)
    return 1.0 - missed
