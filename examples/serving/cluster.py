"""Models, accelerators, and the computation time of an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 10**12
ELEMENT = 2  # Bytes of a BF16 element, of weights, activations and caches.


@dataclass(frozen=True)
class Model:
    """A dense transformer with grouped-query attention."""

    parameters: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int

    @property
    def weights(self) -> float:
        return ELEMENT * self.parameters

    @property
    def kv_per_token(self) -> int:
        """Bytes of keys and values of a token in all layers."""
        return 2 * self.layers * self.kv_heads * (self.hidden // self.heads) * ELEMENT


@dataclass(frozen=True)
class Gpu:
    """An accelerator. ``nvlink`` is one direction, in bytes per second."""

    flops: float
    memory_bandwidth: float
    memory: float
    nvlink: float


# Layers, dimensions and heads: "The Llama 3 Herd of Models" (arXiv 2407.21783), table 3. Parameters: their pages at Hugging Face.
MODELS = {
    "llama-3-8b": Model(8.03e9, 32, 4096, 32, 8),
    "llama-3-70b": Model(70.6e9, 80, 8192, 64, 8),
    "llama-3-405b": Model(405e9, 126, 16384, 128, 8),
}
# Dense BF16 (half of the figure "with sparsity"), memory, and half of the bidirectional NVLink rate: NVIDIA's data sheets of the
# H100 SXM and the A100 80GB SXM.
GPUS = {
    "h100": Gpu(989e12, 3.35e12, 80e9, 450e9),
    "a100": Gpu(312e12, 2.039e12, 80e9, 300e9),
}
# Shares of the two peaks that real kernels achieve. Assumptions: training of Llama 3 has 38 to 43 % of the FLOPS (same paper, table 4),
# and prefill has no backward pass.
COMPUTE_SHARE, MEMORY_SHARE = 0.5, 0.8
# Defaults of vLLM 0.6: the share of the memory for weights and caches (gpu_memory_utilization), and the requests in a batch
# (max_num_seqs).
MEMORY_FOR_USE, MAX_BATCH = 0.9, 256
# Prompts are prefilled together up to this number of tokens, or alone if longer. An assumption.
MAX_PREFILL_TOKENS = 8192


@dataclass(frozen=True)
class Cluster:
    """Instances of a model, each on the GPUs of one or two nodes. A host of the network is a GPU with its NIC."""

    model: Model
    gpu: Gpu
    prefill: int = 4
    decode: int = 4
    nodes: int = 1
    gpus_per_node: int = 8
    per_layer: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of an instance: the degree of tensor parallelism."""
        return self.nodes * self.gpus_per_node

    @property
    def hosts(self) -> int:
        return (self.prefill + self.decode) * self.gpus

    @property
    def room(self) -> int:
        """Tokens of caches that an instance has memory for."""
        free = MEMORY_FOR_USE * self.gpus * self.gpu.memory - self.model.weights
        return int(free / (self.copies * self.model.kv_per_token))

    @property
    def copies(self) -> int:
        """Copies of a cache in an instance: GPUs beyond the number of heads hold heads that others hold, too."""
        return max(1, self.gpus // self.model.kv_heads)

    def compute(self, tokens: int, pairs: int, cached: int) -> int:
        """Time of an iteration without messages: the roofline of one pass over ``tokens``, whose attention has ``pairs`` of query and
        key and reads ``cached`` tokens from the memory; and the all-reduces over NVLink."""
        model, gpu = self.model, self.gpu
        # Two operations per parameter and token; per layer and pair, two per dimension for the score and two for the sum of values.
        flops = 2 * model.parameters * tokens + 4 * model.layers * model.hidden * pairs
        memory = model.weights + self.copies * model.kv_per_token * cached
        roofline = max(flops / gpu.flops / COMPUTE_SHARE, memory / gpu.memory_bandwidth / MEMORY_SHARE) / self.gpus
        part = (self.gpus_per_node - 1) / self.gpus_per_node
        nvlink = self.all_reduces * 2 * part * self.activations(tokens) / gpu.nvlink
        return round(SECOND * (roofline + nvlink))

    @property
    def all_reduces(self) -> int:
        """All-reduces of an iteration: after the attention and after the feed-forward network of each layer."""
        return 2 * self.model.layers

    def activations(self, tokens: int) -> int:
        """Bytes that one all-reduce adds up."""
        return tokens * self.model.hidden * ELEMENT

    def cache_parts(self, tokens: int, sender: Sequence[int], receiver: Sequence[int]) -> list[tuple[int, int, int]]:
        """Messages that move a cache: each GPU sends its share of the heads to the GPU with the same share."""
        size = self.copies * self.model.kv_per_token * tokens // self.gpus
        return [(src, dst, size) for src, dst in zip(sender, receiver)]
