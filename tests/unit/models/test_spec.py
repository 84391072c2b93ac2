from __future__ import annotations

import pytest
from pydantic import ValidationError

from rooflines.errors import InputError, RooflinesError
from rooflines.models.spec import (
    Attention,
    CrossAttention,
    FeedForward,
    GatedDeltaNet,
    Indexer,
    KimiDeltaAttention,
    LatentAttention,
    Layer,
    Mamba,
    Mamba2,
    Matrix,
    MixtureOfExperts,
    ModelSpec,
    MultiTokenPrediction,
)


def attention(**changes) -> Attention:
    facts = {"query_heads": 8, "kv_heads": 2, "head_size": 16, "value_head_size": 16} | changes
    return Attention(**facts)


def latent(**changes) -> LatentAttention:
    # DeepSeek-V3's geometry (https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json).
    facts = {
        "query_heads": 128,
        "query_rank": 1536,
        "kv_rank": 512,
        "nope_head_size": 128,
        "rope_head_size": 64,
        "value_head_size": 128,
    } | changes
    return LatentAttention(**facts)


def model(*layers: Layer, **changes) -> ModelSpec:
    facts = {"hidden": 64, "vocabulary": 1000, "tied_embeddings": False, "dtype": "bf16"} | changes
    return ModelSpec(name="test", family="test", layers=layers or (layer(),), **facts)


def layer(**changes) -> Layer:
    facts = {
        "mixer": attention(),
        "feed_forwards": (FeedForward(width=100, gated=True),),
        "norms": 2,
    } | changes
    return Layer(**facts)


def shapes(mixer, hidden: int = 64) -> dict[str, tuple[int, int]]:
    return {matrix.name: (matrix.outputs, matrix.inputs) for matrix in mixer.matrices(hidden)}


class TestAttention:
    def test_explicit_head_size_shapes_the_projections(self):
        assert shapes(attention()) == {
            "query": (128, 64),
            "key": (32, 64),
            "value": (32, 64),
            "output": (64, 128),
        }

    def test_values_may_be_narrower_than_keys(self):
        mixer = attention(value_head_size=8)
        assert shapes(mixer)["value"] == (16, 64)
        assert shapes(mixer)["output"] == (64, 64)
        assert mixer.kv_elements_per_position == 2 * (16 + 8)

    def test_a_full_gate_doubles_the_queries_and_a_head_gate_adds_one_number_a_head(self):
        assert shapes(attention(gate="full"))["query"] == (256, 64)
        assert shapes(attention(gate="head"))["attention_gate"] == (8, 64)

    def test_shared_kv_has_neither_matrices_nor_cache_nor_key_norm(self):
        mixer = attention(shared_kv=True, qk_norm="head")
        assert set(shapes(mixer)) == {"query", "output"}
        assert mixer.kv_elements(100) == 0
        assert mixer.vector_parameters == 16

    def test_values_that_are_keys_save_weights_but_not_cache(self):
        mixer = attention(value_is_key=True)
        assert "value" not in shapes(mixer)
        assert mixer.kv_elements_per_position == attention().kv_elements_per_position

    def test_input_width_changes_only_what_is_read(self):
        widths = shapes(attention(input_width=128))
        assert widths["query"] == (128, 128)
        assert widths["output"] == (64, 128)

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"qk_norm": "head"}, 32),
            ({"qk_norm": "full"}, (8 + 2) * 16),
            ({"qk_norm": "head", "qk_norm_bias": True}, 64),
            ({"sinks": True}, 8),
            ({"position_bias": 256}, 256),
        ],
    )
    def test_vectors(self, changes, expected):
        assert attention(**changes).vector_parameters == expected

    def test_a_window_keeps_one_position_less_than_it_sees(self):
        # transformers 5.23: SlidingWindowLayer keeps sliding_window - 1 positions.
        assert attention(window=128).kv_elements(1000) == 127 * 64
        assert attention(window=128).kv_elements(100) == 100 * 64
        assert attention(chunk=128).kv_elements(1000) == 127 * 64
        assert attention().kv_elements(1000) == 1000 * 64

    def test_heads_must_divide_and_window_and_chunk_exclude_each_other(self):
        with pytest.raises(ValidationError, match="3 key/value heads do not divide 8"):
            attention(kv_heads=3)
        with pytest.raises(ValidationError, match="not both"):
            attention(window=8, chunk=8)


class TestLatentAttention:
    def test_deepseek_v3_layer(self):
        # 187,107,328 parameters of attention in a layer, 576 cached elements: operator counts of the
        # transformers 5.23 model on the meta device.
        mixer = latent()
        assert (
            sum(matrix.parameters for matrix in mixer.matrices(7168)) + mixer.vector_parameters == 187_107_328
        )
        assert mixer.kv_elements(1) == 576

    def test_uncompressed_queries_have_no_norm(self):
        mixer = latent(query_rank=None)
        assert shapes(mixer, 7168)["query"] == (128 * 192, 7168)
        assert mixer.vector_parameters == 512

    def test_indexer_of_deepseek_v32(self):
        # 13,959,424 parameters a layer: the difference of published totals of V3.2 and V3.
        indexer = Indexer(heads=64, head_size=128, top_k=2048, query_width=1536)
        added = sum(matrix.parameters for matrix in indexer.matrices(7168)) + indexer.vector_parameters
        assert added == 13_959_424
        assert latent(indexer=indexer).kv_elements(1) == 576 + 128

    def test_a_reused_choice_has_no_weights_and_no_index_keys(self):
        indexer = Indexer(heads=64, head_size=128, top_k=2048, query_width=1536, own=False)
        assert latent(indexer=indexer).matrices(7168) == latent().matrices(7168)
        assert latent(indexer=indexer).kv_elements(10) == latent().kv_elements(10)


class TestRecurrent:
    def test_qwen3_next_state(self):
        # 32 value heads of 128 x 128, and 8,192 channels with 3 kept taps (config of Qwen3-Next-80B-A3B).
        mixer = GatedDeltaNet(
            key_heads=16, value_heads=32, key_head_size=128, value_head_size=128, convolution=4
        )
        assert [(state.elements, state.dtype) for state in mixer.states] == [
            (524_288, "fp32"),
            (24_576, None),
        ]
        assert mixer.kv_elements(1_000_000) == 0

    def test_state_does_not_grow_but_counts_in_bytes(self):
        mixer = Mamba2(
            heads=4,
            head_size=8,
            groups=1,
            state_size=16,
            convolution=4,
            convolution_bias=True,
            bias=False,
            state_dtype="fp32",
        )
        spec = model(layer(mixer=mixer, norms=1, feed_forwards=()))
        assert spec.state_elements == 4 * 8 * 16 + (32 + 32) * 3
        assert spec.state_bytes == 4 * 512 + 2 * 192
        assert spec.kv_bytes(5000) == 0

    def test_mamba_layer_of_the_130m_model(self):
        # transformers MambaConfig defaults: h 768, d_i 1536, N 16, rank 48.
        mixer = Mamba(
            inner=1536, state_size=16, time_rank=48, convolution=4, convolution_bias=True, bias=False
        )
        by_hand = 768 * 3072 + 1536 * 5 + 1536 * 80 + 48 * 1536 + 1536 + 1536 * 16 + 1536 + 1536 * 768
        assert sum(m.parameters for m in mixer.matrices(768)) + mixer.vector_parameters == by_hand

    def test_a_full_rank_gate_replaces_two_small_matrices(self):
        low = KimiDeltaAttention(heads=4, head_size=8, convolution=4)
        full = KimiDeltaAttention(heads=4, head_size=8, convolution=4, full_rank_gate=True)
        assert {"delta_gate_down", "delta_gate_up"} <= set(shapes(low))
        assert shapes(full)["delta_gate"] == (32, 64)


class TestExperts:
    def test_all_experts_are_stored_and_k_are_active(self):
        block = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=True)
        spec = model(layer(feed_forwards=(block,)))
        assert spec.parameters_total - spec.parameters_active == 6 * 3 * 64 * 32

    def test_shared_experts_and_their_gate_are_always_active(self):
        plain = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=True)
        shared = plain.model_copy(update={"shared_width": 48, "shared_gate": True})
        added = sum(m.parameters_active for m in shared.matrices(64)) - sum(
            m.parameters_active for m in plain.matrices(64)
        )
        assert added == 3 * 64 * 48 + 64

    def test_latent_experts_work_in_the_latent(self):
        block = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=False, latent=16)
        assert shapes(block)["expert_up"] == (32, 16)
        assert shapes(block)["latent_in"] == (16, 64)
        assert shapes(block)["router"] == (8, 64)

    def test_expert_biases_are_per_expert(self):
        block = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=True, bias=True)
        biases = sum(m.parameters - m.elements for m in block.matrices(64))
        assert biases == 8 * (32 + 32 + 64)

    def test_a_correction_bias_is_a_buffer(self):
        block = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=True, correction_bias=True)
        spec = model(layer(feed_forwards=(block,)))
        without = model(layer(feed_forwards=(block.model_copy(update={"correction_bias": False}),)))
        assert spec.buffers == 8
        assert spec.parameters_total == without.parameters_total

    def test_more_experts_a_token_than_there_are_is_refused(self):
        with pytest.raises(ValidationError, match="9 experts a token, but only 8"):
            MixtureOfExperts(experts=8, experts_per_token=9, width=32, gated=True)


class TestModel:
    def test_tied_and_untied(self):
        assert model().parameters_total - model(tied_embeddings=True).parameters_total == 1000 * 64
        tied = model(tied_embeddings=True)
        assert tied.parameters_active_without_embedding == tied.parameters_total
        assert model().parameters_active_without_embedding == model().parameters_total - 64_000

    def test_gathered_tables_are_stored_but_not_multiplied(self):
        table = Matrix("per_layer_embedding", 16, 500)
        spec = model(gathered=(table,), position_rows=10)
        assert spec.parameters_total == model().parameters_total + 8000 + 640
        assert spec.parameters_active_without_embedding == model().parameters_active_without_embedding

    def test_weight_bytes_follow_the_formats(self):
        bytes_bf16 = model().weight_bytes
        assert bytes_bf16 == 2 * model().parameters_total
        eight_bit = model(layer(formats=(("down", "int8"),)))
        # One byte less a weight, and one fp32 scale an output row.
        assert eight_bit.weight_bytes == bytes_bf16 - 64 * 100 + 4 * 64
        head = model(formats=(("head", "fp32"),))
        assert head.weight_bytes == bytes_bf16 + 2 * 64_000

    def test_tied_head_is_stored_once(self):
        assert model(tied_embeddings=True).weight_bytes == 2 * model(tied_embeddings=True).parameters_total

    def test_kv_bytes(self):
        spec = model(layer(), layer(mixer=attention(window=11)))
        assert spec.kv_bytes_per_token() == 2 * 64 * 2
        assert spec.kv_bytes(100) == (100 + 10) * 64 * 2
        assert spec.kv_bytes_per_token(100) == 1.1 * 64 * 2
        assert spec.kv_bytes(100, "fp8") == (100 + 10) * 64
        assert model(kv_dtype="fp8").kv_bytes(100) == 100 * 64
        with pytest.raises(InputError, match="-1"):
            spec.kv_elements(-1)

    def test_layer_groups_count_equal_layers_whether_or_not_they_are_one_object(self):
        one, other = layer(), layer(norms=1)
        assert model(one, other, layer(), one).layer_groups == ((one, 3), (other, 1))

    def test_encoder_and_cross_attention(self):
        cross = CrossAttention(query_heads=8, kv_heads=8, head_size=16)
        spec = model(layer(cross=cross), encoder=(layer(), layer()))
        alone = model(layer())
        assert spec.parameters_total == (
            alone.parameters_total + 4 * 64 * 128 + 2 * layer().parameters(64) + 64
        )
        assert spec.cross_kv_elements_per_encoder_position == 2 * 8 * 16
        assert spec.kv_elements(10) == alone.kv_elements(10)

    def test_multi_token_prediction_is_apart(self):
        module = MultiTokenPrediction(layers=(layer(),), own_head=True)
        spec = model(mtp=(module,))
        assert spec.parameters_total == model().parameters_total
        assert spec.parameters_mtp == 2 * 64 * 64 + 3 * 64 + layer().parameters(64) + 64_000

    def test_two_feed_forwards_in_a_layer(self):
        experts = MixtureOfExperts(experts=8, experts_per_token=2, width=32, gated=True)
        both = layer(feed_forwards=(FeedForward(width=100, gated=True), experts))
        assert len({m.name for m in both.matrices(64)}) == len(both.matrices(64))
        with pytest.raises(ValidationError, match="'gate'"):
            layer(feed_forwards=(FeedForward(width=10, gated=True), FeedForward(width=10, gated=True)))

    def test_an_unknown_dtype_is_refused(self):
        with pytest.raises(RooflinesError, match="bf61"):
            model(dtype="bf61")
