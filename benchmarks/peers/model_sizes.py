"""What torch_models.py and mindspore_models.py build alike."""

# Of each stage: how much wider inside, channels, blocks, stride of the first, side of the kernel.
MOBILENET = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
             (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))  # fmt: skip
EFFICIENTNET = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip

# Words and length of a sample.
TOKENS = {
    "gpt_small": (65, 64),
    "gpt": (65, 256),
    "bert": (30522, 128),
    "llama": (4096, 1024),
    "lstm": (10000, 128),
}
