"""ResNet-50 (He et al., CVPR 2016), written as networks for the CPU example of the text are."""

import numpy as np

import mindspore.nn as nn
from mindspore import Tensor
from mindspore.ops import operations as P

RANDOM = np.random.RandomState(1)  # the same numbers on every worker


def weight_variable(shape):
    """Normally distributed around 0, for ReLU: the variance is 2 / fan_in."""
    fan_in = np.prod(shape[1:])
    return Tensor((RANDOM.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32))


def weight_variable_ones(shape):
    return Tensor(np.ones(shape).astype(np.float32))


def weight_variable_zeros(shape):
    return Tensor(np.zeros(shape).astype(np.float32))


def conv(in_channels, out_channels, kernel_size, stride=1):
    """A convolution without bias whose output is as large as its input, divided by the stride."""
    weight = weight_variable((out_channels, in_channels, kernel_size, kernel_size))
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size=kernel_size,
        stride=stride,
        padding=0,
        weight_init=weight,
        has_bias=False,
        pad_mode="same",
    )


def batch_norm(channels, gamma=weight_variable_ones):
    """Batch normalization that begins as the identity; with gamma zero it begins by hiding its branch."""
    shape = (channels,)
    return nn.BatchNorm2d(
        channels,
        momentum=0.9,
        eps=1e-5,
        gamma_init=gamma(shape),
        beta_init=weight_variable_zeros(shape),
        moving_mean_init=weight_variable_zeros(shape),
        moving_var_init=weight_variable_ones(shape),
    )


class Bottleneck(nn.Cell):
    """Three convolutions beside a shortcut; the shortcut has a convolution where the shape changes."""

    expansion = 4

    def __init__(self, in_channels, out_channels, stride=1):
        super(Bottleneck, self).__init__()
        channels = out_channels // self.expansion
        self.conv1 = conv(in_channels, channels, 1)
        self.bn1 = batch_norm(channels)
        self.conv2 = conv(channels, channels, 3, stride=stride)
        self.bn2 = batch_norm(channels)
        self.conv3 = conv(channels, out_channels, 1)
        self.bn3 = batch_norm(out_channels, gamma=weight_variable_zeros)
        self.relu = P.ReLU()
        self.add = P.Add()
        self.has_projection = stride != 1 or in_channels != out_channels
        if self.has_projection:
            self.conv_shortcut = conv(in_channels, out_channels, 1, stride=stride)
            self.bn_shortcut = batch_norm(out_channels)

    def construct(self, x):
        shortcut = x
        if self.has_projection:
            shortcut = self.bn_shortcut(self.conv_shortcut(x))
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return self.relu(self.add(out, shortcut))


def stage(in_channels, out_channels, blocks, stride):
    """Blocks of one size; the first one changes it."""
    cells = [Bottleneck(in_channels, out_channels, stride=stride)]
    cells += [Bottleneck(out_channels, out_channels) for _ in range(blocks - 1)]
    return nn.SequentialCell(cells)


class ResNet(nn.Cell):
    """Pictures (N, 3, H, W) to scores (N, num_classes)."""

    def __init__(self, blocks, channels, num_classes, batch_size):
        super(ResNet, self).__init__()
        self.batch_size = batch_size
        self.conv1 = conv(3, 64, 7, stride=2)
        self.bn1 = batch_norm(64)
        self.relu = P.ReLU()
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        self.layer1 = stage(64, channels[0], blocks[0], stride=1)
        self.layer2 = stage(channels[0], channels[1], blocks[1], stride=2)
        self.layer3 = stage(channels[1], channels[2], blocks[2], stride=2)
        self.layer4 = stage(channels[2], channels[3], blocks[3], stride=2)
        self.mean = P.ReduceMean(keep_dims=True)
        self.squeeze = P.Squeeze(axis=(2, 3))
        self.flatten = nn.Flatten()
        weight = weight_variable((num_classes, channels[3]))
        bias = weight_variable_zeros((num_classes,))
        self.end_point = nn.Dense(channels[3], num_classes, has_bias=True, weight_init=weight, bias_init=bias)

    def construct(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.squeeze(self.mean(x, (2, 3)))
        return self.end_point(self.flatten(x))


def resnet50(batch_size, num_classes=10):
    """ResNet-50."""
    return ResNet([3, 4, 6, 3], [256, 512, 1024, 2048], num_classes, batch_size)
