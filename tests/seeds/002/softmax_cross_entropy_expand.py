"""The cross entropy of softmax, spelled out in small operators."""

import mindspore.nn as nn
from mindspore import Tensor
from mindspore.common import dtype as mstype
from mindspore.ops import functional as F
from mindspore.ops import operations as P


class SoftmaxCrossEntropyExpand(nn.Cell):
    """The mean of -sum(target * log(softmax(logit))); sparse labels are classes, others distributions."""

    def __init__(self, sparse=False):
        super(SoftmaxCrossEntropyExpand, self).__init__()
        self.exp = P.Exp()
        self.log = P.Log()
        self.sub = P.Sub()
        self.mul = P.Mul()
        self.div = P.RealDiv()
        self.max = P.ReduceMax(keep_dims=True)
        self.sum = P.ReduceSum(keep_dims=True)
        self.sum_of_row = P.ReduceSum(keep_dims=False)
        self.mean = P.ReduceMean(keep_dims=False)
        self.one_hot = P.OneHot()
        self.on_value = Tensor(1.0, mstype.float32)
        self.off_value = Tensor(0.0, mstype.float32)
        self.sparse = sparse
        self.eps = Tensor(1e-12, mstype.float32)

    def construct(self, logit, label):
        exp = self.exp(self.sub(logit, self.max(logit, -1)))
        softmax = self.div(exp, self.sum(exp, -1))
        if self.sparse:
            label = self.one_hot(label, F.shape(logit)[1], self.on_value, self.off_value)
        log_of_softmax = self.log(softmax + self.eps)
        loss = self.sum_of_row(self.mul(log_of_softmax, label), -1)
        loss = self.mul(F.scalar_to_tensor(-1.0), loss)
        return self.mean(loss, -1)
