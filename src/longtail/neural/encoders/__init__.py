"""Encoders: map the inputs of a batch to `n_features` features per row."""

from longtail.neural.encoders.bag_of_words import BagOfWords
from longtail.neural.encoders.dense import Dense
from longtail.neural.encoders.image_cnn import ImageCNN
from longtail.neural.encoders.pretrained import Pretrained, TextRows
from longtail.neural.encoders.text_cnn import TextCNN, TokenIds

__all__ = ["BagOfWords", "Dense", "ImageCNN", "Pretrained", "TextCNN", "TextRows", "TokenIds"]
