"""The programs, family by family. The last line of each is what it gives; names are those of answers.py."""

import tensors
import training

FAMILIES = {
    function.__name__: function
    for function in (
        *(tensors.operators, tensors.elementwise, tensors.gradients, tensors.pairs, tensors.reductions),
        *(tensors.shapes, tensors.indexing, tensors.creation, tensors.objects, tensors.primitives),
        *(tensors.arguments, tensors.seldom),
        *(training.cells, training.losses, training.optimizers, training.initializers),
        *(training.datasets, training.images, training.metrics, training.sounds, training.messages),
    )
}
