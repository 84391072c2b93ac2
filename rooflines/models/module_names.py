"""What Hugging Face checkpoints call the module behind each matrix of a layer.

Exclusion lists name modules, layers list matrices; this table joins them. Names are those of
``modeling_<family>.py`` in transformers 5.23.0 or of the model's own repository. A matrix may have several: a
list may name the fused module of an engine (``qkv_proj``) where the checkpoint has its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rooflines.errors import UnsupportedArchitectureError
from rooflines.models.layer import Layer

Names = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Modules:
    """Module names of a family.

    Attributes:
        layers: what the list of layers is called.
        names: names within a layer, by matrix.
    """

    layers: str
    names: Names


def _under(parent: str, **names: str) -> Names:
    return {matrix: tuple(f"{parent}.{name}" for name in text.split()) for matrix, text in names.items()}


def _experts(parent: str, gate: str = "gate_proj", up: str = "up_proj", down: str = "down_proj") -> Names:
    return _under(
        parent,
        router="gate router",
        expert_gate=f"experts.0.{gate}",
        expert_up=f"experts.0.{up}",
        expert_down=f"experts.0.{down}",
        shared_gate=f"shared_experts.{gate} shared_expert.{gate}",
        shared_up=f"shared_experts.{up} shared_expert.{up}",
        shared_down=f"shared_experts.{down} shared_expert.{down}",
        shared_expert_gate="shared_expert_gate",
        latent_in="fc1_latent_proj",
        latent_out="fc2_latent_proj",
    )


def _attention(parent: str, output: str = "o_proj", fused: str = "") -> Names:
    """Query, key, value and output; `fused` where the checkpoint has one module for the first three."""
    if fused:
        return _under(parent, query=fused, key=fused, value=fused, output=output)
    return _under(
        parent, query="q_proj qkv_proj", key="k_proj qkv_proj", value="v_proj qkv_proj", output=output
    )


_LATENT: Final = _under(
    "self_attn",
    query_down="q_a_proj",
    query_up="q_b_proj",
    latent_down="kv_a_proj_with_mqa",
    latent_up="kv_b_proj",
    index_query="indexer.wq_b",
    index_key="indexer.wk",
    index_weight="indexer.weights_proj",
    attention_gate="g_proj gate_proj",
)
_GATED_DELTA: Final = _under(
    "linear_attn",
    delta_qkv="in_proj_qkv in_proj_qkvz",
    delta_gate="in_proj_z in_proj_qkvz",
    delta_beta="in_proj_b in_proj_ba",
    delta_decay="in_proj_a in_proj_ba",
)
_KIMI_DELTA: Final = _under(
    "self_attn",
    delta_query="q_proj",
    delta_key="k_proj",
    delta_value="v_proj",
    delta_decay_down="f_a_proj",
    delta_decay_up="f_b_proj",
    delta_beta="b_proj",
    delta_gate="g_proj",
    delta_gate_down="g_a_proj",
    delta_gate_up="g_b_proj",
)
_MLP: Final = _under("mlp", gate="gate_proj gate_up_proj", up="up_proj gate_up_proj", down="down_proj")


def _mamba(parent: str) -> Names:
    return _under(parent, mamba_in="in_proj", mamba_x="x_proj", mamba_step="dt_proj", mamba_out="out_proj")


# The output projection of blocks that are not attention, by kind of mixer.
_OUTPUTS: Final = {"gated_delta_net": ("linear_attn.out_proj",), "kimi_delta": ("self_attn.o_proj",)}
_USUAL: Final[Names] = {
    **_attention("self_attn"),
    **_LATENT,
    **_KIMI_DELTA,
    **_GATED_DELTA,
    **_MLP,
    **_experts("mlp"),
    **_mamba("mamba"),
}
_SPARSE_MOE: Final = _experts("block_sparse_moe", "w1", "w3", "w2")


def _modules(*names: Names, layers: str = "model.layers") -> Modules:
    return Modules(layers, {matrix: paths for table in (_USUAL, *names) for matrix, paths in table.items()})


def _ungated(parent: str, up: str, down: str) -> Names:
    return _under(parent, up=up, down=down)


_DENSE_4H: Final = _ungated("mlp", "dense_h_to_4h", "dense_4h_to_h")
_USUAL_MODULES: Final = _modules()
_PER_LAYER_INPUTS: Final[Names] = {
    "per_layer_gate": ("per_layer_input_gate",),
    "per_layer_projection": ("per_layer_projection",),
}


def _t5(feed_forward: str) -> Names:
    return {
        **_under("layer.0.SelfAttention", query="q", key="k", value="v", output="o"),
        **_under(
            "layer.1.EncDecAttention", cross_query="q", cross_key="k", cross_value="v", cross_output="o"
        ),
        **_under(f"{feed_forward}.DenseReluDense", gate="wi_0", up="wi_1 wi", down="wo"),
    }


_FAMILIES: Final[dict[str, Modules]] = {
    "t5": _modules(_t5("layer.2"), layers="decoder.block"),
    "t5/encoder": _modules(_t5("layer.1"), layers="encoder.block"),
    "gemma3n": _modules(
        _PER_LAYER_INPUTS,
        _under(
            "altup",
            altup_router="modality_router",
            altup_predict="prediction_coefs",
            altup_correct="correction_coefs",
        ),
        _under("laurel", laurel_left="linear_left", laurel_right="linear_right"),
    ),
    "gemma4": _modules(
        _PER_LAYER_INPUTS,
        {"router": ("router", "router.proj")},
        _under("experts.0", expert_gate="gate_proj", expert_up="up_proj", expert_down="down_proj"),
    ),
    "mixtral": _modules(_SPARSE_MOE),
    "phimoe": _modules(_SPARSE_MOE),
    "minimax_m2": _modules(_SPARSE_MOE),
    "kimi_linear": _modules(_SPARSE_MOE),
    "kimi_k3": _modules(_SPARSE_MOE),
    "granitemoe": _modules(_experts("block_sparse_moe", "input_linear", "input_linear", "output_linear")),
    "dbrx": _modules(_experts("ffn", "mlp.w1", "mlp.v1", "mlp.w2"), layers="transformer.blocks"),
    "llama4": _modules(
        _experts("feed_forward"), _under("feed_forward", gate="gate_proj", up="up_proj", down="down_proj")
    ),
    "jamba": _modules(
        _experts("feed_forward"), _under("feed_forward", gate="gate_proj", up="up_proj", down="down_proj")
    ),
    "mamba": _modules(_mamba("mixer"), layers="backbone.layers"),
    "mamba2": _modules(_mamba("mixer"), layers="backbone.layers"),
    "nemotron_h": _modules(
        _attention("mixer"),
        _mamba("mixer"),
        _ungated("mixer", "up_proj", "down_proj"),
        _experts("mixer"),
        layers="backbone.layers",
    ),
    "phi3": _modules(
        _attention("self_attn", fused="qkv_proj"),
        _under("mlp", gate="gate_up_proj", up="gate_up_proj", down="down_proj"),
    ),
    "glm": _modules(_under("mlp", gate="gate_up_proj", up="gate_up_proj", down="down_proj")),
    "glm4": _modules(_under("mlp", gate="gate_up_proj", up="gate_up_proj", down="down_proj")),
    "phi": _modules(_attention("self_attn", "dense"), _ungated("mlp", "fc1", "fc2")),
    "starcoder2": _modules(_ungated("mlp", "c_fc", "c_proj")),
    "opt": _modules(
        _attention("self_attn", "out_proj"),
        {"up": ("fc1",), "down": ("fc2",)},
        layers="model.decoder.layers",
    ),
    "gpt2": _modules(
        _attention("attn", "c_proj", "c_attn"), _ungated("mlp", "c_fc", "c_proj"), layers="transformer.h"
    ),
    "gpt_bigcode": _modules(
        _attention("attn", "c_proj", "c_attn"), _ungated("mlp", "c_fc", "c_proj"), layers="transformer.h"
    ),
    "gptj": _modules(
        _attention("attn", "out_proj"), _ungated("mlp", "fc_in", "fc_out"), layers="transformer.h"
    ),
    "gpt_neox": _modules(
        _attention("attention", "dense", "query_key_value"), _DENSE_4H, layers="gpt_neox.layers"
    ),
    "falcon": _modules(
        _attention("self_attention", "dense", "query_key_value"), _DENSE_4H, layers="transformer.h"
    ),
    "bloom": _modules(
        _attention("self_attention", "dense", "query_key_value"), _DENSE_4H, layers="transformer.h"
    ),
    "mpt": _modules(
        _attention("attn", "out_proj", "Wqkv"),
        _ungated("ffn", "up_proj", "down_proj"),
        layers="transformer.blocks",
    ),
    "chatglm": _modules(
        _attention("self_attention", "dense", "query_key_value"),
        _under("mlp", gate="dense_h_to_4h", up="dense_h_to_4h", down="dense_4h_to_h"),
        layers="transformer.encoder.layers",
    ),
    "qwen": _modules(
        _attention("attn", "c_proj", "c_attn"),
        _under("mlp", gate="w2", up="w1", down="c_proj"),
        layers="transformer.h",
    ),
}
# Families that carry another's modules; an encoder's are under the family's name and "/encoder".
_SAME: Final = {
    "llama4_text": "llama4",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "granitemoeshared": "granitemoe",
    "falcon_mamba": "mamba",
}
# Modules outside the layers.
_OUTER: Final = {
    "head": "lm_head",
    "per_layer_model_projection": "model.per_layer_model_projection",
    "altup_project": "model.altup_projections.0",
    "altup_unembed": "model.altup_unembed_projections.0",
    "embedding_in": "model.decoder.project_in",
    "embedding_out": "model.decoder.project_out",
}


def module_names(family: str, index: int, layer: Layer, matrix: str) -> tuple[str, ...]:
    """Names under which a checkpoint lists the module of one matrix.

    Args:
        family: `model_type`; of an encoder's layers with ``/encoder``.
        index: number of the layer.
        layer: the layer itself; the output projection's name depends on its mixer.
        matrix: name of the matrix (`Layer.matrices`).

    Raises:
        UnsupportedArchitectureError: the module behind this matrix is not known.
    """
    modules = _FAMILIES.get(_SAME.get(family, family), _USUAL_MODULES)
    tails = modules.names.get(matrix, ())
    if matrix == "output" and layer.mixer is not None:
        tails = _OUTPUTS.get(layer.mixer.kind, tails)
    if not tails:
        raise _unknown(family, matrix)
    return tuple(f"{modules.layers}.{index}.{tail}" for tail in tails)


def outer_module_name(family: str, matrix: str) -> str:
    """Name of the module of a matrix outside the layers (`ModelSpec.extras`, ``head``).

    Raises:
        UnsupportedArchitectureError: the module behind this matrix is not known.
    """
    if matrix not in _OUTER:
        raise _unknown(family, matrix)
    return _OUTER[matrix]


def _unknown(family: str, matrix: str) -> UnsupportedArchitectureError:
    return UnsupportedArchitectureError(
        f"the module of the matrix {matrix!r} in a {family} checkpoint is not known, so that its number "
        "format in a quantised checkpoint cannot be told"
    )
