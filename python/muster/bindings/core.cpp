// Module `_core`: everything that C++ offers to Python, by module.
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/op_functions.h"

NB_MODULE(_core, core) {
  using namespace muster::python;
  // Objects that are still alive when the interpreter ends (a traceback holds them) are no leak worth a
  // report.
  nb::set_leak_warnings(false);
  // Who imports it first is Python's main thread, and is waited for at the end: no thread of ours may be it.
  nb::module_::import_("threading");
  core.doc() = "The C++ library behind muster; import its names from muster.";
  bind_errors(core);
  bind_dtype(core);
  bind_tensor(core);
  bind_parameter(core);
  bind_initializers(core);
  bind_op_functions(core);
  bind_ops(core);
  bind_array(core);
  bind_image(core);
  bind_ops_math(core);
  bind_control(core);
  bind_functions(core);
  bind_cell(core);
  bind_cell_state(core);
  bind_place(core);
  bind_amp(core);
  bind_activations(core);
  bind_containers(core);
  bind_images(core);
  bind_normalization(core);
  bind_sequences(core);
  bind_losses(core);
  bind_schedules(core);
  bind_optimizers(core);
  bind_training_cells(core);
  bind_clipping(core);
  bind_groups(core);
  bind_transforms(core);
  bind_dataset(core);
  bind_session(core);
  bind_metrics(core);
  bind_callbacks(core);
  bind_checkpoint(core);
  bind_export(core);
  bind_network_nodes(core);
  bind_explanation(core);
  bind_stacks(core);
  bind_telemetry(core);
  bind_model(core);
  bind_recoverable(core);
  allow_abstract_classes();
  bind_abstract_classes(core);
  bind_collective(core);
  core.def(
      "_is_ready", [](nb::handle instance) { return nb::inst_ready(instance); }, nb::arg("instance"),
      "Whether the object's __init__ of the library has run.");
}
