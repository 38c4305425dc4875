"""What an explainer has learned, how it is learned, and the base of the explainers that hold it."""

from voicecf.learned.learned import Learned

__all__ = ["Learned"]
