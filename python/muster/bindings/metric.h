// Metrics in the Python bindings.
#pragma once

#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// A float, a numpy array, or what a metric written in Python gave.
nb::object metric_value_object(const train::MetricValue& value);
// A dict by name.
nb::typed<nb::dict, nb::str, nb::any> metric_values_object(const train::MetricValues& values);

// None, a dict from names to metrics, or names: {"accuracy"}.
train::NamedMetrics metrics_from(nb::handle object);

}  // namespace muster::python
