"""Programs of training: cells, losses, optimizers, initializers, data and metrics."""

# Programs are read best with one in a row.
# ruff: noqa: E501
# fmt: off

import itertools

from tables import some, table

# ---- Cells -----------------------------------------------------------------------------------------------

CELLS = {
    "2, 4": table("cells_of_2x4"),
    "2, 3, 6": table("cells_of_2x3x6"),
    "2, 4, 6, 6": table("cells_of_2x4x6x6"),
    "1, 2, 4, 4, 4": table("cells_of_1x2x4x4x4"),
}


def cells():
    for shape, kinds in CELLS.items():
        for kind in kinds:
            yield f"cell = filled({kind})\ncell(T('float32', {shape}))"
            yield f"cell = filled({kind})\nG(cell, T('float32', {shape}))"
            yield f"class N(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.inner = {kind}\n    def construct(self, x):\n        return self.inner(x)\ncell = filled(N())\nms.grad(lambda x: (cell(x) ** 2).sum(), None, cell.trainable_params())(T('float32', {shape})) if cell.trainable_params() else None"
            yield f"cell = {kind}\n[(p.name, p.shape, p.dtype, p.requires_grad) for p in cell.get_parameters()]"
            if kind.endswith(")"):
                yield f"str({kind})"
        for kind in some(shape, kinds, 16):
            yield f"ms.set_context(mode=0)\ncell = filled({kind})\ncell(T('float32', {shape}))"
            yield f"cell = filled({kind})\ncell(T('float16', {shape}))"
            yield f"cell = filled({kind})\ncell(T('float64', {shape}))"
            yield f"cell = filled({kind})\ncell(T('int32', {shape}))"
    for line in table("cells"):
        kind, _, inputs = line.partition("|")
        yield f"cell = filled({kind})\ncell({inputs})"
        yield f"ms.set_context(mode=0)\ncell = filled({kind})\ncell({inputs})"
        yield f"cell = {kind}\n[(p.name, p.shape) for p in cell.get_parameters()]"
        if inputs.count("float32") >= 2 and "None" not in inputs and "((" not in inputs and "(T" not in inputs:
            yield f"cell = filled({kind})\nG(cell, {inputs})"
        if kind.endswith(")"):
            yield f"str({kind})"
    for name in ("conv2d", "conv1d", "conv3d"):
        dims = name[4]
        x = {"1": "2, 4, 8", "2": "2, 4, 6, 6", "3": "1, 4, 4, 4, 4"}[dims]
        w = {"1": "4, 4, 3", "2": "4, 4, 3, 3", "3": "4, 4, 2, 2, 2"}[dims]
        for options in ("", ", pad_mode='same'", ", pad_mode='pad', padding=1", ", stride=2", ", dilation=2"):
            yield f"ops.{name}(T('float32', {x}), U('float32', {w}){options})"
            yield f"G(lambda x, w: ops.{name}(x, w{options}), T('float32', {x}), U('float32', {w}))"
    for text in table("image_ops"):
        yield f"X = T('float32', 2, 4, 6, 6)\n{text}"
        yield f"X = T('float32', 2, 4, 6, 6)\nG(lambda X: {text}, X)"
        yield f"X = T('float16', 2, 4, 6, 6)\n{text}"


# ---- Losses, optimizers, schedules, initializers ---------------------------------------------------------


def losses():
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "PoissonNLLLoss", "SoftMarginLoss", "MultiLabelSoftMarginLoss", "MAELoss", "RMSELoss", "FocalLoss", "DiceLoss", "CosineEmbeddingLoss"):
        for reduction in ("mean", "sum", "none"):
            form = f"nn.{name}(reduction='{reduction}')"
            for dtype in ("float32", "float16"):
                inputs = f"ops.sigmoid(T('{dtype}', 3, 4)), ops.sigmoid(U('{dtype}', 3, 4))"
                yield f"{form}({inputs})"
                yield f"loss = {form}\nG(loss, {inputs})"
        yield f"nn.{name}()(ops.sigmoid(T('float32', 3, 4)), ops.sigmoid(U('float32', 3, 4)))"
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "binary_cross_entropy", "kl_div", "soft_margin_loss", "poisson_nll_loss", "multilabel_soft_margin_loss", "gaussian_nll_loss", "hinge_embedding_loss"):
        for reduction in ("mean", "sum", "none"):
            inputs = "ops.sigmoid(T('float32', 3, 4)), ops.sigmoid(U('float32', 3, 4))"
            yield f"ops.{name}({inputs}, reduction='{reduction}')"
            yield f"mint.nn.functional.{name}({inputs}, reduction='{reduction}')"
            yield f"G(lambda x, y: ops.{name}(x, y, reduction='{reduction}'), {inputs})"
    for reduction, weight, smoothing, ignore in itertools.product(("mean", "sum", "none"), ("None", "Tensor([1., 2., 3., 4.], ms.float32)"), ("0.0", "0.1"), ("-100", "1")):
        options = f"weight={weight}, ignore_index={ignore}, reduction='{reduction}', label_smoothing={smoothing}"
        yield f"ops.cross_entropy(T('float32', 3, 4), Tensor([0, 1, 3], ms.int32), {options})"
        yield f"G(lambda x: ops.cross_entropy(x, Tensor([0, 1, 3], ms.int32), {options}), T('float32', 3, 4))"
        yield f"nn.CrossEntropyLoss({options})(T('float32', 3, 4, 2), Tensor([[0, 1], [1, 2], [3, 3]], ms.int32))"
        yield f"nn.CrossEntropyLoss({options})(T('float32', 3, 4), ops.softmax(U('float32', 3, 4)))"
        yield f"nn.NLLLoss(weight={weight}, ignore_index={ignore}, reduction='{reduction}')(ops.log_softmax(T('float32', 3, 4)), Tensor([0, 1, 3], ms.int32))"
    yield from table("losses")


STEPS = """net = nn.Dense(2, 2)
net.weight.set_data(Tensor([[0.5, -0.5], [1.0, 0.25]], ms.float32))
net.bias.set_data(Tensor([0.1, -0.1], ms.float32))
opt = nn.{}
step = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, opt.parameters)
for i in range({}):
    _, grads = step(P('float32', 3, 2) / (i + 1))
    opt(grads)
(net.weight, net.bias)"""
OPTIMIZERS = {
    "SGD": ["", "learning_rate=0.01", "0.1, 0.9", "0.1, momentum=0.9, nesterov=True", "0.1, momentum=0.9, dampening=0.1", "0.1, weight_decay=0.1", "0.1, 0.9, loss_scale=2.0"],
    "Momentum": ["0.1, 0.9", "0.1, 0.9, weight_decay=0.1", "0.1, 0.9, loss_scale=4.0", "0.01, 0.0", "[0.1, 0.05, 0.01], 0.9", "[0.1], 0.9", "nn.ExponentialDecayLR(0.1, 0.5, 2), 0.9", "Tensor([0.1, 0.01], ms.float32), 0.9", "Tensor(0.1), 0.9"],
    "Adam": ["", "0.1", "0.1, 0.8, 0.9", "0.1, eps=1e-3", "0.1, weight_decay=0.1", "0.1, use_nesterov=True", "0.1, use_amsgrad=True", "0.1, loss_scale=2.0", "0.1, use_locking=True", "nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)"],
    "AdamWeightDecay": ["", "0.1", "0.1, weight_decay=0.1", "0.1, 0.8, 0.9, 1e-3, 0.1"],
    "AdamOffload": ["0.1"],
    "RMSProp": ["", "0.1", "0.1, decay=0.8", "0.1, momentum=0.5", "0.1, centered=True", "0.1, epsilon=1e-3, weight_decay=0.1"],
    "Adagrad": ["", "0.1", "accum=0.5", "weight_decay=0.1", "loss_scale=2.0"],
    "Adadelta": ["", "0.5", "1.0, rho=0.8, epsilon=1e-4", "weight_decay=0.1"],
    "AdaMax": ["", "0.1", "0.1, weight_decay=0.1"],
    "ASGD": ["", "0.1", "0.1, lambd=1e-2, alpha=0.5, t0=1.0"],
    "Rprop": ["", "0.1", "0.1, etas=(0.4, 1.3), step_sizes=(1e-5, 10.)"],
    "FTRL": ["", "learning_rate=0.1", "l1=0.01", "l2=0.01", "weight_decay=0.1"],
    "Lamb": ["0.1", "0.1, weight_decay=0.1"],
    "LazyAdam": ["0.1"],
    "ProximalAdagrad": ["", "learning_rate=0.1", "l1=0.01"],
    "thor": [],
}


def optimizers():
    for name, kinds in OPTIMIZERS.items():
        for options, steps in itertools.product(kinds, (1, 4)):
            yield STEPS.format(f"{name}(net.trainable_params(), {options})", steps)
        if kinds:
            some_options = kinds[min(1, len(kinds) - 1)]
            groups = "[{'params': [net.weight], 'lr': 0.05, 'weight_decay': 0.01}, {'params': [net.bias]}]"
            yield STEPS.format(f"{name}({groups}, {some_options})", 3)
            yield STEPS.format(f"{name}([{{'params': [net.weight], 'weight_decay': 0.1}}, {{'params': [net.bias]}}, {{'order_params': net.trainable_params()}}], {some_options})", 3)
            yield f"net = nn.Dense(2, 2)\nopt = nn.{name}(net.trainable_params(), {some_options})\n[p.name for p in opt.get_parameters()]"
            yield f"net = nn.Dense(2, 2)\nopt = nn.{name}(net.trainable_params(), {some_options})\nopt.get_lr()"
            yield f"net = nn.Dense(2, 2)\nopt = nn.{name}(net.trainable_params(), {some_options})\nopt.learning_rate"
            train = f"""net = filled(nn.Dense(2, 2))
loss = nn.MSELoss()
opt = nn.{name}(net.trainable_params(), {some_options})
cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), opt)
cell.set_train()
a = [cell(P('float32', 3, 2), T('float32', 3, 2)) for _ in range(3)]
(a, net.weight)"""
            yield train
            yield "ms.set_context(mode=0)\n" + train
    for name, kinds in {"SGD": ["lr=0.1", "lr=0.1, momentum=0.9", "lr=0.1, momentum=0.9, nesterov=True", "lr=0.1, weight_decay=0.1", "lr=0.1, maximize=True"], "Adam": ["", "lr=0.1", "lr=0.1, amsgrad=True", "lr=0.1, weight_decay=0.1"], "AdamW": ["", "lr=0.1", "lr=0.1, weight_decay=0.1"], "Adagrad": ["", "lr=0.1, lr_decay=0.1"], "Adadelta": ["lr=0.5"], "Adamax": ["lr=0.1"], "ASGD": ["lr=0.1"], "NAdam": ["lr=0.1"], "RAdam": ["lr=0.1"], "RMSprop": ["lr=0.1", "lr=0.1, centered=True, momentum=0.5"], "Rprop": ["lr=0.1"]}.items():
        for options in kinds:
            yield STEPS.replace("nn.{}", f"optim.{name}(net.trainable_params(), {options})").replace("{}", "3")
        yield f"net = nn.Dense(2, 2)\nopt = optim.{name}(net.trainable_params(), lr=0.1)\nsorted(opt.param_groups[0])"
    for text in table("schedulers"):
        yield f"net = nn.Dense(2, 2)\nopt = optim.SGD(net.trainable_params(), lr=0.1)\nsch = optim.lr_scheduler.{text}\nout = []\nfor _ in range(5):\n    out.append(float(opt.param_groups[0]['lr']))\n    sch.step()\nout"
    yield from table("schedules")
    yield from table("scaling")


INITIALIZERS = table("initializers")


def initializers():
    for each in INITIALIZERS:
        yield f"x = init.initializer({each}, (300, 200), ms.float32).init_data().asnumpy()\n(round(float(x.mean()) * 20) / 20, float(f'{{x.std():.1g}}'), x.shape, x.dtype)"
        yield f"x = init.initializer({each}, [300, 200])\n(x.shape, x.dtype)"
        yield f"x = init.initializer({each}, (64, 32, 3, 3), ms.float32).init_data().asnumpy()\n(float(f'{{x.std():.1g}}'), float(f'{{np.abs(x).max():.1g}}'))"
        yield f"x = init.initializer({each}, (300, 200), ms.float16)\nstr(x.dtype)"
        yield f"p = Parameter(init.initializer({each}, (300, 200)), name='p')\nfloat(f'{{p.asnumpy().std():.1g}}')"
        yield f"c = nn.Dense(200, 300, weight_init={each})\nfloat(f'{{c.weight.asnumpy().std():.1g}}')"
        yield f"c = nn.Dense(2, 3)\nc.weight.set_data(init.initializer({each}, c.weight.shape, c.weight.dtype))\nc.weight.shape"
    for cell in table("initialized_cells"):
        yield f"cell = {cell}\n[(p.name, float(f'{{p.asnumpy().std():.1g}}'), round(float(p.asnumpy().mean()) * 5) / 5) for p in cell.get_parameters()]"
        yield f"cell = {cell}\n[(p.name, float(f'{{np.abs(p.asnumpy()).max():.1g}}')) for p in cell.get_parameters() if p.asnumpy().size > 1000 and p.asnumpy().std() > 0 and abs(np.abs(p.asnumpy()).max() / p.asnumpy().std() - 1.73) < 0.05]"
    for text in table("random"):
        yield f"x = {text}.asnumpy()\n(round(float(x.mean()) * 10) / 10, float(f'{{x.std():.1g}}'), x.shape, x.dtype)"
    yield from table("random_types")


# ---- Data and metrics ------------------------------------------------------------------------------------

SOURCE = "data = ds.NumpySlicesDataset({'x': np.arange(7), 'y': np.arange(14, dtype=np.float32).reshape(7, 2)}, shuffle=False)\n"


def datasets():
    for text in table("pipelines"):
        yield f"{SOURCE}rows({text})"
        yield f"{SOURCE}data = {text}\n(data.get_dataset_size(), data.get_col_names(), data.output_shapes(), [str(t) for t in data.output_types()])"
        yield f"{SOURCE}data = {text}\n(data.get_batch_size(), data.get_repeat_count(), len(data) if hasattr(data, '__len__') else None)"
        yield f"{SOURCE}[list(r) for r in ({text}).create_dict_iterator(num_epochs=1, output_numpy=True)][:2]"
        yield f"{SOURCE}[r for r in ({text}).create_dict_iterator(num_epochs=1)][:2]"
    for source in table("sources"):
        yield f"rows({source})"
        yield f"data = {source}\n(data.get_dataset_size(), data.get_col_names(), data.output_shapes(), [str(t) for t in data.output_types()])"
        yield f"rows({source}.batch(2))"
        yield f"rows({source}.repeat(2))"
        yield f"rows({source}.map(lambda *a: a[0], input_columns=[{source}.get_col_names()[0]]))"
    for sampler in table("samplers"):
        yield f"data = ds.NumpySlicesDataset(list(range(7)), sampler={sampler})\nlen(rows(data))"
        yield f"data = ds.NumpySlicesDataset(list(range(7)), sampler={sampler})\nsorted(int(r[0]) for r in rows(data)) if not ('placement=True' in '''{sampler}''' or 'Weighted' in '''{sampler}''' or 'num_samples=3' in '''{sampler}''') else None"
        yield f"data = ds.NumpySlicesDataset(list(range(7)), sampler={sampler})\ndata.get_dataset_size()"
        yield f"data = ds.GeneratorDataset(list(range(7)), ['a'], sampler={sampler})\nlen(rows(data))"
        if "Random" not in sampler and "DistributedSampler(2, 0)" not in sampler:
            yield f"data = ds.NumpySlicesDataset(list(range(7)), sampler={sampler})\n[int(r[0]) for r in rows(data)]"
            yield f"data = ds.GeneratorDataset(list(range(7)), ['a'], sampler={sampler})\n[int(r[0]) for r in rows(data)]"
    yield f"{SOURCE}type(next(data.create_tuple_iterator(output_numpy=True))).__name__"
    yield f"{SOURCE}type(next(data.create_tuple_iterator())[0]).__name__"
    yield from table("datasets")


IMAGE = "img = (np.arange(6 * 8 * 3) * 7 % 256).reshape(6, 8, 3).astype(np.uint8)\n"
VISION = table("vision")


def images():
    for text in VISION:
        yield f"{IMAGE}t = {text}\nt(img) if callable(t) else t"
        yield f"{IMAGE}t = {text}\nt((img / 255).astype(np.float32)) if callable(t) else t"
        yield f"{IMAGE}t = {text}\nt(img[:, :, :1]) if callable(t) else t"
        yield f"{IMAGE}t = {text}\nrows(ds.NumpySlicesDataset([img, img + 1], ['i'], shuffle=False).map(t, 'i'))"
        yield f"{IMAGE}from PIL import Image\nt = {text}\no = t(Image.fromarray(img)) if callable(t) else t\n(type(o).__name__, np.asarray(o))"
    for shape in some("resize", itertools.product((1, 3, 5, 7, 12, 14), (2, 4, 8, 9, 15)), 14):
        for inter in ("LINEAR", "NEAREST", "CUBIC", "ANTIALIAS", "PILCUBIC"):
            yield f"{IMAGE}vision.Resize({shape}, vision.Inter.{inter})(img)"
            yield f"{IMAGE}from PIL import Image\nnp.asarray(vision.Resize({shape}, vision.Inter.{inter})(Image.fromarray(img)))"
    yield from table("transforms")


SOUND = """def waves(*shape):
    return np.sin(np.arange(np.prod(shape)) * 1.7 + np.arange(np.prod(shape)) ** 2 / 50).reshape(shape)
w, long, s, c = waves(2, 60) * 0.9, waves(2, 1000) * 0.9, abs(waves(2, 20, 30)), waves(2, 201, 12, 2)
"""


def sounds():
    for text in table("sounds"):
        yield SOUND + text


def messages():
    """What errors say where scripts look at it, and arguments that MindSpore's own tests give."""
    yield from table("messages")


def metrics():
    kinds = {
        "Accuracy()": ("multiclass", "multiclass indexes"),
        "Accuracy('multilabel')": ("multilabel",),
        "Accuracy('classification')": ("multiclass",),
        "Precision()": ("multiclass", "multiclass indexes"),
        "Precision('multilabel')": ("multilabel",),
        "Recall()": ("multiclass",),
        "Recall('multilabel')": ("multilabel",),
        "F1()": ("multiclass",),
        "Fbeta(2.0)": ("multiclass",),
        "TopKCategoricalAccuracy(2)": ("multiclass",),
        "Top1CategoricalAccuracy()": ("multiclass",),
        "Top5CategoricalAccuracy()": ("multiclass",),
        "MAE()": ("values",),
        "MSE()": ("values",),
        "Loss()": ("loss",),
        "ConfusionMatrix(3)": ("classes",),
        "ConfusionMatrix(3, 'true')": ("classes",),
        "ConfusionMatrix(3, 'all', 0.5)": ("classes",),
        "ConfusionMatrixMetric(metric_name='sensitivity')": ("multiclass",),
        "CosineSimilarity()": ("matrix",),
        "Dice()": ("binary",),
        "HausdorffDistance()": ("binary",),
        "MeanSurfaceDistance()": ("binary",),
        "RootMeanSquareDistance()": ("binary",),
        "OcclusionSensitivity()": (),
        "Perplexity()": ("multiclass",),
        "ROC()": ("one", "binary"),
        "ROC(3)": ("multiclass",),
        "BleuScore()": ("words",),
    }
    inputs = {
        "multiclass": "Tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]], ms.float32), Tensor([1, 0, 1, 2], ms.int32)",
        "multiclass indexes": "Tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], ms.float32), Tensor([[0, 1, 0], [0, 0, 1]], ms.int32)",
        "multilabel": "Tensor([[0, 1, 1], [1, 0, 1], [0, 1, 0]], ms.float32), Tensor([[0, 1, 1], [1, 1, 0], [0, 0, 1]], ms.float32)",
        "values": "T('float32', 4), U('float32', 4)",
        "matrix": "P('float32', 3, 3)",
        "loss": "Tensor(1.5)",
        "classes": "Tensor([0, 1, 2, 1], ms.int32), Tensor([0, 2, 2, 1], ms.int32)",
        "binary": "Tensor([[1, 0, 1], [0, 1, 1], [1, 0, 0]]), Tensor([[1, 1, 1], [0, 1, 0], [1, 0, 1]])",
        "one": "Tensor([0.1, 0.4, 0.35, 0.8], ms.float32), Tensor([0, 0, 1, 1], ms.int32)",
        "words": "[['the', 'cat', 'is', 'on', 'mat']], [[['there', 'is', 'a', 'cat', 'on', 'mat']]]",
    }
    for kind, names in kinds.items():
        for name in names:
            update = f"m.update({inputs[name]})"
            for module in ("train", "nn"):
                yield f"m = {module}.{kind}\n{update}\nm.eval()"
            yield f"m = train.{kind}\n{update}\n{update}\nm.eval()"
            yield f"m = train.{kind}\n{update}\nm.clear()\n{update}\nm.eval()"
            yield f"m = train.{kind}\nm.clear()\n{update}\nm.eval()"
            yield f"m = train.{kind}\nm({inputs[name]})"
            yield f"m = train.{kind}\ntype(({update}, m.eval())[1]).__name__"
            yield f"m = train.{kind}\n{update.replace('Tensor(', 'np.array(').replace(', ms.float32)', ')').replace(', ms.int32)', ')')}\nm.eval()"
        yield f"train.{kind}.eval()"
    for average in ("True", "False"):
        for kind in ("Precision()", "Recall()", "F1()", "Fbeta(0.5)"):
            argument = "" if kind == "F1()" else average
            yield f"m = train.{kind}\nm.update({inputs['multiclass']})\nm.eval({argument})"
    yield from table("metrics")
    model = """net = filled(nn.Dense(2, 3))
model = ms.Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean'), nn.SGD(net.trainable_params(), 0.1), metrics={'accuracy', 'loss'})
data = ds.NumpySlicesDataset((np.arange(12, dtype=np.float32).reshape(6, 2) / 10, np.array([0, 1, 2, 0, 1, 2], np.int32)), ['x', 'y'], shuffle=False).batch(2)
"""
    for text in table("model"):
        yield model + text
