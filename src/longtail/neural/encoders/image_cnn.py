"""`ImageCNN`: encodes small images with a few convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from longtail.errors import InvalidInput


class ImageCNN(nn.Module):
    """A 3 x 3 convolution, ReLU and 2 x 2 max-pooling for each entry of `maps`, then a fully connected layer.

    Parameters
    ----------
    height, width : int
        Size of the images in pixels.
    channels : int
        1 for grey images.
    maps : sequence of int
        Number of filters of each convolution.
    n_features : int
        Width of the features.
    dropout : float
        Dropout of the features.

    Examples
    --------
    >>> import torch
    >>> ImageCNN(28, 28, n_features=64)(torch.zeros(2, 28, 28)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        height: int,
        width: int,
        channels: int = 1,
        maps: Sequence[int] = (16, 32),
        n_features: int = 128,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not maps or min(channels, n_features, *maps) < 1 or min(height, width) < 2 ** len(maps):
            raise InvalidInput(
                f"{len(maps)} convolutions over images of {channels} x {height} x {width} to {n_features} features; "
                f"each convolution halves the image, and at least one pixel must remain"
            )
        self.shape = (channels, height, width)
        self.n_features = n_features
        layers: list[nn.Module] = []
        for before, after in zip((channels, *maps[:-1]), maps, strict=True):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        left = maps[-1] * (height >> len(maps)) * (width >> len(maps))
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(left, n_features), nn.ReLU(), nn.Dropout(dropout))

    def forward(self, images: Tensor) -> Tensor:
        """The features of images (n_rows x channels x height x width); a single channel needs no dimension."""
        features: Tensor = self.layers(images.reshape(len(images), *self.shape))
        return features
