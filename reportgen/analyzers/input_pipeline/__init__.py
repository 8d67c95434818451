"""Is the program input-bound, what does it cost per step, and which stage is to blame."""

from reportgen.analyzers.input_pipeline.analyzer import InputPipelineAnalyzer

__all__ = ["InputPipelineAnalyzer"]
