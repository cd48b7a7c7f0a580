"""Names how gradients travel: `Compression.none`, `.fp16`, `.bf16`."""

from muster.keras.compression import BF16Compressor, Compression, FP16Compressor, NoneCompressor

__all__ = ["BF16Compressor", "Compression", "FP16Compressor", "NoneCompressor"]
