"""What `fit` learns (`Learned`), how it is learned, and the base class of the explainers."""

from voicecf.learned.learned import Learned

__all__ = ["Learned"]
