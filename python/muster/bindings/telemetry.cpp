// What other people's tools read: the callbacks that write it, event files by hand, and profiles.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/telemetry/telemetry.h"
#include "muster/train/train.h"
#include "python/muster/bindings/bindings.h"
#include "python/muster/bindings/callback.h"
#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

using telemetry::EventFile;

std::int64_t at_least_1(std::int64_t every, const char* what) {
  if (every < 1) throw nb::value_error((std::string(what) + ": every is at least 1 step").c_str());
  return every;
}

void bind_loggers(nb::module_& core) {
  bind_callback_class<train::JsonLines>(
      core, "JsonLines",
      "Appends a line of JSON for each step to a file: step, epoch, rank, time (seconds since 1970), loss, "
      "learning_rate, step_seconds; and behind fit's evaluations one with their metrics.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::JsonLines> self, const nb::object& path, std::int64_t every,
             bool all_ranks) {
            new (self.p) CallbackTrampoline<train::JsonLines>(
                nb::cast<std::string>(nb::str(path)),
                train::LoggerOptions{.every = at_least_1(every, "JsonLines"), .all_ranks = all_ranks});
          },
          nb::arg("path"), nb::kw_only(), nb::arg("every") = 1, nb::arg("all_ranks") = false,
          "Every `every` steps, on rank 0; with `all_ranks`, or where `path` has '{rank}' in it, on every "
          "rank. A training that goes on after a loss goes on in the file, and repeats no step. OSError "
          "where the file cannot be written.");
  bind_callback_class<train::TensorBoard>(
      core, "TensorBoard",
      "Writes TensorBoard's event files: scalars loss, learning_rate and step_seconds, eval/<metric> behind "
      "fit's evaluations, the network's graph, and histograms of its parameters.")
      .def(
          "__init__",
          [](nb::pointer_and_handle<train::TensorBoard> self, const nb::object& folder, std::int64_t every,
             std::int64_t histograms, bool graph, bool all_ranks) {
            if (histograms < 0) throw nb::value_error("TensorBoard: histograms is a number of steps, or 0");
            new (self.p) CallbackTrampoline<train::TensorBoard>(
                nb::cast<std::string>(nb::str(folder)),
                train::TensorBoardOptions{
                    .logger = {.every = at_least_1(every, "TensorBoard"), .all_ranks = all_ranks},
                    .histograms = histograms,
                    .graph = graph});
          },
          nb::arg("folder"), nb::kw_only(), nb::arg("every") = 1, nb::arg("histograms") = 0,
          nb::arg("graph") = true, nb::arg("all_ranks") = false,
          "Every `every` steps, and histograms every `histograms` steps (0: none; a multiple of `every`), on "
          "rank 0 or on `all_ranks`. A training that goes on after a loss goes on in the file, and repeats "
          "no step. OSError where the folder cannot be written.");
}

// ---- Event files by hand ----------------------------------------------------------------------------------

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pixels = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void add_image(EventFile& self, std::string_view tag, const Pixels& pixels, std::int64_t step, double time) {
  const telemetry::Picture picture{.height = static_cast<std::uint32_t>(pixels.shape(0)),
                                   .width = static_cast<std::uint32_t>(pixels.shape(1)),
                                   .channels = static_cast<std::uint32_t>(pixels.shape(2)),
                                   .pixels = {pixels.data(), pixels.size()}};
  self.add(tag, step, unwrap(telemetry::picture_summary(tag, picture)), time);
}

void add_tensor(EventFile& self, std::string_view tag, nb::handle object, std::int64_t step) {
  const Tensor tensor = elements_of(value_from(object));
  self.add(
      tag, step,
      telemetry::tensor_summary(tag, tensor.dtype(), tensor.shape(), {tensor.bytes(), tensor.size_bytes()}));
}

void add_settings(EventFile& self, const telemetry::Settings& settings,
                  const std::vector<std::string>& metrics) {
  for (const auto& summary : telemetry::settings_summaries(settings, metrics, telemetry::wall_seconds()))
    self.add("_hparams_", 0, summary);
}

void bind_event_file(nb::module_& core) {
  nb::class_<EventFile>(core, "_EventFile")
      .def("__init__",
           [](EventFile* self, const std::string& folder, const std::string& name, bool goes_on) {
             new (self) EventFile(
                 unwrap(goes_on ? EventFile::go_on(folder, name) : EventFile::create(folder, name)));
           })
      .def("last_step",
           [](const EventFile& self, std::string_view tag) {
             const auto found = self.last_steps().find(tag);
             return found == self.last_steps().end() ? std::int64_t{-1} : found->second;
           })
      .def("add_scalar", [](EventFile& self, std::string_view tag, double value, std::int64_t step,
                            double time) { self.add_scalar(tag, step, value, time); })
      .def("add_histogram",
           [](EventFile& self, std::string_view tag, const Numbers& numbers, std::int64_t step, double time) {
             self.add(tag, step, telemetry::Histogram({numbers.data(), numbers.size()}).summary(tag), time);
           })
      .def("add_image", &add_image)
      .def("add_text", [](EventFile& self, std::string_view tag, std::string_view text, std::int64_t step,
                          double time) { self.add(tag, step, telemetry::text_summary(tag, text), time); })
      // `value` is a whole Summary.Value, made by _summary_values.py.
      .def("add_value",
           [](EventFile& self, std::string_view tag, const nb::bytes& value, std::int64_t step, double time) {
             self.add(tag, step, std::as_bytes(std::span(value.c_str(), value.size())), time);
           })
      .def("add_tensor", &add_tensor)
      .def("add_settings", &add_settings)
      .def("add_graph",
           [](EventFile& self, nn::Cell& cell, const nb::list& inputs) {
             std::vector<graph::TensorType> types;
             for (const nb::handle input : inputs) types.push_back(value_from(input).type());
             self.add_graph(unwrap(train::graph_of_network(cell, types)));
           })
      .def("flush", [](EventFile& self) { unwrap(self.flush()); })
      .def_prop_ro("path", &EventFile::path);
}

nb::tuple records_in(const nb::bytes& data) {
  const telemetry::Records found =
      telemetry::records_in({reinterpret_cast<const std::byte*>(data.c_str()), data.size()});
  nb::list contents;
  for (const auto content : found.contents) contents.append(nb::bytes(content.data(), content.size()));
  return nb::make_tuple(contents, found.end);
}

}  // namespace

void bind_telemetry(nb::module_& core) {
  bind_loggers(core);
  bind_event_file(core);
  core.def("_rank", &train::rank);  // 0 in a process alone
  core.def("_world_size", &train::world_size);
  core.def("_records_in", &records_in, nb::arg("data"),
           "The records at the begin of a TFRecord file whose checksums hold, and the byte where the last of "
           "them ends.");
  core.def("_start_profile", [] { unwrap(train::start_profile()); });
  core.def("_stop_profile", [](const std::string& folder) { return unwrap(train::stop_profile(folder)); });
}

}  // namespace muster::python
