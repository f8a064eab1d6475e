"""Programs over mindspore.train's metrics, as datasets.py has them for datasets."""

SCORES = "T([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]])"
LABELS = "I([1, 0, 1])"
ONE_HOT = "I([[0, 1], [1, 0], [0, 1]])"
FLAGS = "I([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]]), I([[0, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1]])"
OUTLINES = "np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]])"
WORDS = (
    "[['i', 'have', 'a', 'pen', 'on', 'my', 'desk'], ['he', 'is', 'a', 'good', 'boy', 'ok']], "
    "[[['i', 'have', 'a', 'pen', 'on', 'my', 'desk'], ['there', 'is', 'a', 'pen', 'on', 'desk']], "
    "[['he', 'is', 'a', 'bad', 'boy', 'ok']]]"
)
PROBABILITIES = (
    "np.array([[.28, .55, .15, .05], [.1, .2, .05, .05], [.2, .05, .15, .05], [.05, .05, .05, .75]])"
)

COUNTED = [
    "Accuracy()",
    "Top1CategoricalAccuracy()",
    "TopKCategoricalAccuracy(2)",
    "Precision()",
    "Recall()",
    "F1()",
]
COUNTED += ["Fbeta(2)", "MAE()", "MSE()", "Loss()", "ConfusionMatrix(2)", "Dice()", "Perplexity()"]
FIGURES = (
    "sensitivity",
    "specificity",
    "precision",
    "negative predictive value",
    "miss rate",
    "fall out",
    "accuracy",
)
FIGURES += (
    "false discovery rate",
    "false omission rate",
    "threat score",
    "balanced accuracy",
    "f1 score",
    "prevalence",
)
FIGURES += ("matthews correlation coefficient", "fowlkes mallows index", "informedness", "markedness")

METRICS = [
    *[f"train.{metric}({SCORES}, {LABELS})" for metric in COUNTED],
    *[f"train.{metric}({SCORES}, {ONE_HOT})" for metric in COUNTED if metric != "Perplexity()"],
    *[f"train.{metric}.eval()" for metric in COUNTED],
    *[f"train.{metric}.update({SCORES})" for metric in COUNTED],
    *[f"train.{metric}.update('a', 'b')" for metric in COUNTED if metric != "Loss()"],
    *[f"type(train.{metric}({SCORES}, {ONE_HOT})).__name__" for metric in ("Accuracy()", "MAE()", "Dice()")],
    *[f"train.{name}('multilabel')({FLAGS})" for name in ("Accuracy", "Precision", "Recall")],
    *[
        f"train.{name}('multilabel').update({SCORES}, {LABELS})"
        for name in ("Accuracy", "Precision", "Recall")
    ],
    *[f"train.{name}({value})" for name in ("Accuracy", "Precision", "Recall") for value in ("'test'", "3")],
    f"counted(train.Precision('multilabel'), ({FLAGS}), ({FLAGS}))",
    f"counted(train.Dice(), ({ONE_HOT}, {ONE_HOT}), ({ONE_HOT}, 1 - {ONE_HOT}))",
    "counted(train.Loss(), (T([.5]),), (T([1.5]),))",
    "train.Loss()(T([.5, 2]))",
    "train.Fbeta(0)",
    "train.TopKCategoricalAccuracy(0)",
    "train.TopKCategoricalAccuracy('1')",
    "train.ConfusionMatrix('1')",
    "train.ConfusionMatrix(2, 'z')",
    "train.ConfusionMatrix(2, threshold='z')",
    *[f"counted(train.ConfusionMatrixMetric(True, {name!r}), flagged, flagged[::-1])" for name in FIGURES],
    *[
        f"counted(train.ConfusionMatrixMetric({skip}, {name!r}, {each}, {how!r}), flagged, flagged[::-1])"
        for skip in (True, False)
        for name in ("sensitivity", "precision", "f1 score")
        for each in (True, False)
        for how in ("mean", "sum")
    ],
    "train.ConfusionMatrixMetric(skip_channel=1)",
    "train.ConfusionMatrixMetric(decrease='zz')",
    *[
        f"train.CosineSimilarity({how!r}, {then!r}, {zero})({SCORES})"
        for how in ("cosine", "dot")
        for then in ("none", "sum", "mean")
        for zero in (True, False)
    ],
    "train.CosineSimilarity('x')",
    "train.CosineSimilarity().eval()",
    "train.Dice('a')",
    *[
        f"train.{name}({symmetric}, {how!r})({OUTLINES}, {label})"
        for name in ("MeanSurfaceDistance", "RootMeanSquareDistance")
        for symmetric in (True, False)
        for how in ("euclidean", "chessboard", "taxicab")
        for label in (0, 1)
    ],
    *[
        f"train.HausdorffDistance({how!r}, {percentile}, {directed})({OUTLINES}, {label})"
        for how in ("euclidean", "chessboard", "taxicab")
        for percentile in (None, 50.0)
        for directed in (True, False)
        for label in (0, 1)
    ],
    "train.HausdorffDistance().eval()",
    "train.MeanSurfaceDistance().eval()",
    "train.HausdorffDistance('q')",
    "train.HausdorffDistance(directed=1)",
    f"train.HausdorffDistance()({OUTLINES}, 8)",
    f"train.HausdorffDistance().update({OUTLINES})",
    f"train.Perplexity(1)({SCORES}, {LABELS})",
    "train.Perplexity('a')",
    f"train.Perplexity().update({SCORES}, I([1, 2]))",
    f"train.BleuScore()({WORDS})",
    f"train.BleuScore(2, True)({WORDS})",
    "train.BleuScore(2, True)([['i', 'have']], [[['i', 'have', 'a', 'pen']]])",
    *[f"train.BleuScore({value})" for value in ("5.5", "0", "7", "3, 1")],
    "train.BleuScore().eval()",
    "train.BleuScore().update([['a']], [])",
    "train.ROC(pos_label=1)(np.array([3, 1, 4, 2]), np.array([0, 1, 0, 1]))",
    "train.ROC()(np.array([.1, .4, .35, .8]), np.array([0, 0, 1, 1]))",
    f"train.ROC(4)({PROBABILITIES}, np.array([0, 1, 2, 3]))",
    "train.ROC('a')",
    "train.ROC(pos_label=1.5)",
    "train.ROC().eval()",
    "train.auc(np.array([0., .2, .4, 1]), np.array([0., .5, .6, 1]))",
    "train.auc(np.array([1., .2, .1]), np.array([0., .5, .6]))",
    "train.auc(np.array([1., .2, .4]), np.array([0., .5, .6]), True)",
    "train.auc(np.array([1., .2, .4]), np.array([0., .5, .6]))",
    "train.auc(np.array([1., .2]), np.array([0.]))",
    "train.auc([1., .2], [0., 1.])",
    "type(train.get_metric_fn('hausdorff_distance')).__name__",
    "train.get_metric_fn('zz')",
    "train.names()",
    "train.OcclusionSensitivity().eval()",
    "train.Accuracy().set_indexes([0, 2]).indexes",
    "train.Accuracy().set_indexes('a')",
    "train.Accuracy()._convert_data('a')",
]
