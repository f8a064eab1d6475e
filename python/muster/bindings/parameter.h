// class Parameter: a Tensor that outlives the calls and is updated in place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/graph/graph.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"

namespace muster::python {

// One Python object for one Parameter as long as that object lives, so that `is` and dict keys work.
class PythonParameter : public graph::Value {
 public:
  explicit PythonParameter(graph::ParameterPtr parameter);
  PythonParameter(const PythonParameter&) = delete;
  PythonParameter& operator=(const PythonParameter&) = delete;
  ~PythonParameter();

  // The file that a value was read from, where it is a piece of a parameter.
  std::shared_ptr<const train::FilePiece> file;
};

nb::object parameter_object(const graph::ParameterPtr& parameter);

// What `self`, a Tensor, is from now on: elements do not change, the object gets others. Those of a Parameter
// are written, in traced code when the graph runs.
void set_value(nb::handle self, graph::Value value);
nb::typed<nb::list, PythonParameter> parameter_objects(const std::vector<graph::ParameterPtr>& parameters);

// What Parameter.set_param_ps does.
void put_on_servers(const graph::ParameterPtr& parameter, bool init_in_server,
                    const train::TableOptions& options = {});

// A list of Parameters from any iterable of them; `what` names it in errors ("SGD(params)").
std::vector<graph::ParameterPtr> parameters_from(nb::handle iterable, const std::string& what);

}  // namespace muster::python
