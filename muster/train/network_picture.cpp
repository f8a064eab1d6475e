#include "muster/train/network_picture.h"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "muster/graph/explanation.h"
#include "muster/graph/graph.h"
#include "muster/train/explain.h"

namespace muster::train {
namespace {

std::string why_none(const graph::Explanation& plan) {
  return fmt::format("{}: nothing is placed on a worker (Cell.place): each rank computes the whole network\n",
                     plan.name);
}

bool is_divided(const graph::Explanation& plan) {
  return !plan.partition.stages.empty() || plan.mesh.mesh != nullptr;
}

class PictureKeeper final : public graph::FunctionObserver {
 public:
  explicit PictureKeeper(std::string folder) : folder_(std::move(folder)) {}

  // A divided plan says more than one that is not; of others the larger one: a step that trains, and not the
  // evaluation before it.
  void traced(const graph::Function& function, const graph::TraceRecord& trace) override {
    const graph::Explanation plan = function.explain();
    const std::pair size(is_divided(plan), trace.nodes);
    if (size <= kept_) return;
    kept_ = size;
    if (const auto written = keep(plan); !written && !std::exchange(has_warned_, true))
      log::warning(
          fmt::format("the page will not show the network of this run: {}", written.error().message));
  }
  void calling(const graph::Function&, bool) override {}

 private:
  // The words last: who sees them finds the picture. One of an earlier process of this rank goes.
  Result<> keep(const graph::Explanation& plan) const {
    if (!is_divided(plan)) {
      std::error_code ignored;
      std::filesystem::remove(folder_ + "/network.svg", ignored);
      return write("network.txt", why_none(plan));
    }
    if (plan.partition.stages.empty()) return keep(plan.mesh);
    return keep(plan.partition);
  }
  template <class Divided>
  Result<> keep(const Divided& divided) const {
    MUSTER_TRY_VOID(write("network.svg", to_svg(divided)));
    return write("network.txt", to_string(divided));
  }
  Result<> write(const char* name, const std::string& text) const {
    return real_files().write(folder_ + '/' + name, std::as_bytes(std::span(text)));
  }

  std::string folder_;
  std::pair<bool, std::size_t> kept_{false, 0};
  bool has_warned_ = false;
};

}  // namespace

void keep_network_picture(const Environment& environment) {
  const std::string folder = environment.get("MUSTER_RUN_FOLDER").value_or("");
  if (folder.empty() || explain_mode() != ExplainMode::off) return;
  graph::observe_functions(new PictureKeeper(folder));  // lives as long as the process
}

}  // namespace muster::train
