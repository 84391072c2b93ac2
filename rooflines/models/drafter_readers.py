"""`read_drafter`: from a drafter's config.json to a `DrafterSpec`.

A drafter's config says ``model_type: llama`` and one layer; read as such it would gain an embedding and a
head that it does not have and lose the projection that it does. Layouts follow SafeAILab/EAGLE
(https://github.com/SafeAILab/EAGLE/blob/main/eagle/model/cnets.py), FasterDecoding/Medusa
(https://github.com/FasterDecoding/Medusa/blob/main/medusa/model/medusa_model.py) and sgl-project/SpecForge
(https://github.com/sgl-project/SpecForge/tree/main/specforge/modeling/draft).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from rooflines.errors import ConfigError, InputError, UnknownNameError
from rooflines.facts import render_mistakes
from rooflines.models.adapters.common import Reach, attentions, layer_count, read_dtype
from rooflines.models.attention import Norms
from rooflines.models.config_view import ConfigView
from rooflines.models.drafters import DrafterSpec, Method, medusa_drafter
from rooflines.models.matrix import Matrix
from rooflines.models.readers import open_config, read_model
from rooflines.models.spec import Attention, FeedForward, Layer, ModelSpec

_EAGLE3_FEATURES: Final = 3  # hidden states of three layers of the target (EAGLE-3, arXiv 2503.01840)
_ARCHITECTURES: Final[dict[str, Method]] = {
    "LlamaForCausalLMEagle3": "eagle3",
    "Eagle3LlamaForCausalLM": "eagle3",
    "PEagleDraftModel": "p-eagle",
    "DFlashDraftModel": "dflash",
    "DominoDraftModel": "domino",
    "DSparkDraftModel": "dspark",
    "MedusaModel": "medusa",
}


def read_drafter(
    source: Mapping[str, Any] | str | Path,
    method: Method | None = None,
    target: ModelSpec | None = None,
    name: str | None = None,
) -> DrafterSpec:
    """Read a drafter's config.

    Args:
        source: a parsed config, or a path to one or to its folder.
        method: how it drafts, where the file does not say (EAGLE-1 and -2 files look like a Llama of one
            layer). It is never guessed from a name or path.
        target: the model it drafts for; Medusa files do not state its width and vocabulary, only its name.
        name: what to call it.

    Raises:
        ConfigError: a needed field is missing or wrong, or nothing says how it drafts.
        InputError: an unknown method.
        FileFormatError: a file that is no JSON object.
    """
    if method is not None and method not in READERS:
        raise InputError(f"unknown drafting method {method!r}; known: {', '.join(READERS)}")
    config, label = open_config(source, name)
    view = ConfigView(config, label)
    chosen = method or drafting_method(view)
    if chosen is None:
        raise ConfigError(
            f"{label}: nothing in the config says that this is a drafter; name its method "
            f"({', '.join(READERS)})"
        )
    try:
        spec = READERS[chosen](view, target)
    except ValidationError as mistakes:
        raise ConfigError(f"{label}: {render_mistakes(mistakes)}") from None
    return spec.model_copy(update={"ignored_keys": view.unread(), "assumed": tuple(view.assumed)})


def drafting_method(view: ConfigView) -> Method | None:
    """What the config itself says about how it drafts; None where it looks like an ordinary model."""
    listed = view.value("architectures")
    for entry in listed if isinstance(listed, list | tuple) else ():
        if isinstance(entry, str) and entry in _ARCHITECTURES:
            return _ARCHITECTURES[entry]
    if view.has("dflash_config"):
        kind = view.level("dflash_config").text("projector_type", "dflash")
        found: dict[str, Method] = {"dflash": "dflash", "domino": "domino", "dspark": "dspark"}
        if kind not in found:
            raise view.unsupported("dflash_config", f"projector_type {kind!r}")
        return found[kind]
    if view.has("medusa_num_heads"):
        return "medusa"
    return "eagle3" if view.has("draft_vocab_size") or view.has("eagle_config") else None


def is_drafter(config: Mapping[str, Any]) -> bool:
    """Whether a parsed config says that it describes a drafter."""
    return drafting_method(ConfigView(config, "config")) is not None


def _mixers(view: ConfigView, hidden: int, length: int, *, qk_norm: Norms = "none") -> list[Attention]:
    bias = view.flag("attention_bias", default=False)
    found = attentions(view, hidden, (Reach(),) * length, qkv_bias=bias, output_bias=bias, qk_norm=qk_norm)
    mixers = [mixer for mixer in found if mixer is not None]
    if len(mixers) < length:
        raise view.wrong("num_key_value_heads", "a number of heads")
    return mixers


def _feed_forward(view: ConfigView) -> FeedForward:
    return FeedForward(
        width=view.size("intermediate_size"), gated=True, bias=view.flag("mlp_bias", default=False)
    )


def _read_eagle(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """EAGLE-1 and -2: a projection of embedding and feature, one Llama layer without its input norm."""
    del target
    hidden, length = view.size("hidden_size"), layer_count(view)
    block = _feed_forward(view)
    layers = tuple(
        Layer(mixer=mixer, feed_forwards=(block,), norms=1 if index == 0 else 2)
        for index, mixer in enumerate(_mixers(view, hidden, length))
    )
    view.disregard("model_type", "tie_word_embeddings")
    vocabulary = view.size("vocab_size")
    return DrafterSpec(
        name=view.name,
        method="eagle",
        hidden=hidden,
        target_hidden=hidden,
        layers=layers,
        entry=(Matrix("fuse", 2 * hidden, hidden, view.flag("bias", default=True)),),
        heads=(),
        shares=("embedding", "head"),
        vocabulary=vocabulary,
        draft_vocabulary=vocabulary,
        dtype=_dtype(view),
    )


def _dtype(view: ConfigView) -> str:
    dtype, stated = read_dtype(view)
    if not stated:
        view.assumed.append(f"dtype {dtype}: the config names none")
    return dtype


def _eagle3(view: ConfigView, method: Method, mask_hidden: int = 0) -> DrafterSpec:
    """A projection of three features, a first layer that reads embedding and feature side by side, a head."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    target_hidden = view.optional_size("target_hidden_size") or hidden
    block = _feed_forward(view)
    layers = tuple(
        Layer(
            mixer=mixer.model_copy(update={"input_width": 2 * hidden}) if index == 0 else mixer,
            feed_forwards=(block,),
            norms=3 if index == 0 else 2,
        )
        for index, mixer in enumerate(_mixers(view, hidden, length))
    )
    features = _aux_count(view) * target_hidden
    view.disregard("model_type", "tie_word_embeddings")
    draft_vocabulary = view.optional_size("draft_vocab_size") or view.size("vocab_size")
    return DrafterSpec(
        name=view.name,
        method=method,
        hidden=hidden,
        target_hidden=target_hidden,
        layers=layers,
        entry=(Matrix("fuse", features, hidden),),
        heads=(Matrix("head", hidden, draft_vocabulary),),
        norms=1,
        extra_vector_parameters=mask_hidden * features,
        shares=("embedding",),
        vocabulary=view.size("vocab_size"),
        draft_vocabulary=draft_vocabulary,
        dtype=_dtype(view),
    )


def _aux_count(view: ConfigView) -> int:
    if not view.has("eagle_config"):
        return _EAGLE3_FEATURES
    eagle = view.level("eagle_config")
    if not eagle.has("eagle_aux_hidden_state_layer_ids"):
        return _EAGLE3_FEATURES
    return _listed(eagle, "eagle_aux_hidden_state_layer_ids")


def _listed(view: ConfigView, key: str) -> int:
    """How many layers of the target a list names."""
    value = view.value(key)
    if not isinstance(value, list | tuple) or not value or any(type(entry) is not int for entry in value):
        raise view.wrong(key, "a list of layer numbers")
    return len(value)


def _read_eagle3(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """EAGLE-3: the head covers only the draft vocabulary."""
    del target
    return _eagle3(view, "eagle3")


def _read_peagle(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """P-EAGLE: several layers, and a learned feature for positions that are not known yet."""
    del target
    return _eagle3(view, "p-eagle", mask_hidden=1)


def _read_medusa(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """Medusa: each head is residual blocks, which share one module, and a full head over the vocabulary."""
    count = view.size("medusa_num_heads", most=64)
    view.size("medusa_num_layers", most=64)
    hidden, vocabulary, dtype = _of_target(view, target)
    view.assumed.append(
        "medusa_num_heads as stated: uploaded files of Medusa-1 say 2 where the weights hold 5 heads"
    )
    return medusa_drafter(view.name, hidden, vocabulary, dtype, count)


def _of_target(view: ConfigView, target: ModelSpec | None) -> tuple[int, int, str]:
    """Width, vocabulary and dtype of the target: stated, given, or those of the preset that is named."""
    if view.has("hidden_size") and view.has("vocab_size"):
        return view.size("hidden_size"), view.size("vocab_size"), _dtype(view)
    if target is None:
        base = view.text("base_model_name_or_path")
        try:
            target = read_model(base)
        except UnknownNameError:
            raise ConfigError(
                f"{view.name}: base_model_name_or_path {base!r} is no preset: give the target model"
            ) from None
    view.disregard("base_model_name_or_path")
    return target.hidden, target.vocabulary, target.dtype


def _block_drafter(
    view: ConfigView, method: Method, heads: tuple[Matrix, ...] = (), gathered: tuple[Matrix, ...] = ()
) -> DrafterSpec:
    """The DFlash body: Qwen3 layers that see a whole block both ways, fed by features of the target."""
    hidden, length = view.size("hidden_size"), layer_count(view)
    view.disregard("layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "model_type")
    if view.flag("use_sliding_window", default=False):
        raise view.unsupported("use_sliding_window")
    block = _feed_forward(view)
    mixers = [
        mixer.model_copy(update={"causal": False}) for mixer in _mixers(view, hidden, length, qk_norm="head")
    ]
    features = _listed(view.level("dflash_config"), "target_layer_ids")
    view.disregard("tie_word_embeddings", "num_target_layers", "emb_dim")
    size = view.size("block_size")
    # DFlash's first position is the token that is known; DSpark and shifted Domino predict from it too.
    first = method != "dspark" and not view.level("dflash_config").flag("shift_label", default=False)
    if first and size == 1:
        raise view.wrong("block_size", "2 or more: the first position of a block is no draft")
    vocabulary = view.size("vocab_size")
    return DrafterSpec(
        name=view.name,
        method=method,
        hidden=hidden,
        target_hidden=hidden,
        layers=tuple(Layer(mixer=mixer, feed_forwards=(block,), norms=2) for mixer in mixers),
        entry=(Matrix("fuse", features * hidden, hidden),),
        heads=heads,
        gathered=gathered,
        norms=2,
        shares=("embedding", "head"),
        vocabulary=vocabulary,
        draft_vocabulary=vocabulary,
        dtype=_dtype(view),
        block_size=size,
        draft_length=size - 1 if first else size,
    )


def _read_dflash(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """DFlash: one pass over a block."""
    del target
    return _block_drafter(view, "dflash")


def _read_domino(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """Domino: DFlash, and a recurrent correction of its logits."""
    del target
    inner = view.level("dflash_config")
    hidden, vocabulary = view.size("hidden_size"), view.size("vocab_size")
    state, narrow = inner.size("gru_hidden_dim"), inner.size("emb_dim")
    heads = (
        Matrix("gru_input", hidden, 3 * state),
        Matrix("gru_state", state, 3 * state),
        Matrix("correction_in", hidden + state, narrow),
        Matrix("correction_out", narrow, vocabulary),
    )
    return _block_drafter(view, "domino", heads)


def _read_dspark(view: ConfigView, target: ModelSpec | None) -> DrafterSpec:
    """DSpark: DFlash, a low-rank head on the previous token, and a prediction of acceptance."""
    del target
    inner = view.level("dflash_config")
    if inner.text("attention_mode", "gqa") != "gqa":
        raise inner.unsupported("attention_mode")
    hidden, vocabulary = view.size("hidden_size"), view.size("vocab_size")
    rank = inner.count("markov_rank", default=0)
    heads: list[Matrix] = []
    gathered: tuple[Matrix, ...] = ()
    if rank:
        gathered = (Matrix("markov_embedding", rank, vocabulary),)
        heads += [*_markov_gate(inner, hidden, rank), Matrix("markov_head", rank, vocabulary)]
    if inner.flag("enable_confidence_head", default=False):
        features = hidden + (rank if inner.flag("confidence_head_with_markov", default=True) else 0)
        heads.append(Matrix("confidence", features, 1, bias=True))
    return _block_drafter(view, "dspark", tuple(heads), gathered)


def _markov_gate(inner: ConfigView, hidden: int, rank: int) -> tuple[Matrix, ...]:
    kind = inner.text("markov_head_type", "vanilla")
    gates = {
        "vanilla": (),
        "gated": (Matrix("markov_gate", hidden + rank, rank, bias=True),),
        "rnn": (Matrix("markov_joint", 2 * rank + hidden, 3 * rank, bias=True),),
    }
    if kind not in gates:
        raise inner.unsupported("markov_head_type", f"known: {', '.join(gates)}")
    return gates[kind]


READERS: Final[dict[Method, Callable[[ConfigView, ModelSpec | None], DrafterSpec]]] = {
    "eagle": _read_eagle,
    "eagle3": _read_eagle3,
    "p-eagle": _read_peagle,
    "medusa": _read_medusa,
    "dflash": _read_dflash,
    "domino": _read_domino,
    "dspark": _read_dspark,
}
