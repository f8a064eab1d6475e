#include "muster/train/flight.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/net/net.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/session.h"
#include "muster/train/training_numbers.h"

namespace muster::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t earlier_kept = 3;  // of a rank, which may die and come back very often

void remove_earlier(const fs::path& folder, const std::string& beginning) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(beginning) &&
        entry.path().extension() == telemetry::flight_extension)
      found.emplace_back(entry.last_write_time(ignored), entry.path());
  std::ranges::sort(found);
  for (std::size_t i = 0; i + earlier_kept < found.size(); ++i) {
    fs::remove(found[i].second, ignored);
    fs::remove(found[i].second.replace_extension(telemetry::stacks_extension), ignored);
  }
}

std::string beginning_of(std::uint32_t rank) { return fmt::format("worker_{}_", rank); }

// JSON has no word for NaN and infinity: launch/dashboard/job_json.cpp reads these.
std::string number_text(double number) {
  if (std::isnan(number)) return "\"nan\"";
  return std::isfinite(number) ? fmt::format("{}", number) : fmt::format("\"{}\"", number);
}

// What `muster runs` reads of this training: its seed, where that is known, and `more`.
void keep_training(const std::string& folder, const std::string& more) {
  const auto known = process().kept_seed;
  const std::string text = fmt::format("{{{}{}{}}}\n", known ? fmt::format("\"seed\":{}", *known) : "",
                                       known && !more.empty() ? "," : "", more);
  if (const auto kept = real_files().write(folder + "/training.json", std::as_bytes(std::span(text))); !kept)
    log::warning(fmt::format("`muster runs` will not know the seed and the end of this run: {}",
                             kept.error().message));
}

}  // namespace

std::string flight_file(const std::string& run_folder, std::uint32_t rank) {
  return fmt::format("{}/{}/{}{}{}", run_folder, telemetry::flight_folder, beginning_of(rank), ::getpid(),
                     telemetry::flight_extension);
}

std::shared_ptr<telemetry::FlightRecorder> open_flight_recorder(const cluster::Node& node,
                                                                const Environment& environment) {
  const std::string run_folder = environment.get("MUSTER_RUN_FOLDER").value_or("");
  if (run_folder.empty()) return nullptr;
  remove_earlier(fs::path(run_folder) / telemetry::flight_folder, beginning_of(node.rank()));
  const auto roster = node.roster();
  auto recorder = telemetry::FlightRecorder::open(
      flight_file(run_folder, node.rank()), {.job_id = roster->job_id,
                                             .rank = node.rank(),
                                             .world_size = static_cast<std::uint32_t>(roster->workers.size()),
                                             .pid = ::getpid(),
                                             .host = net::host_name()});
  if (recorder) return *std::move(recorder);
  log::warning(
      fmt::format("`muster autopsy` will not know of this process's calls: {}", recorder.error().message));
  return nullptr;
}

void keep_seed(const Environment& environment) {
  const std::string folder = environment.get("MUSTER_RUN_FOLDER").value_or("");
  const bool is_kept = process().kept_seed == seed();
  if (folder.empty() || Session::current() == nullptr || rank() != 0 || is_kept) return;
  process().kept_seed = seed();
  keep_training(folder, "");
}

void keep_last_step(const Environment& environment, std::uint32_t rank, std::uint64_t step) {
  const std::string folder = environment.get("MUSTER_RUN_FOLDER").value_or("");
  if (folder.empty() || rank != 0 || step == 0) return;
  const auto loss = numbers_of_training().loss;
  keep_training(
      folder, fmt::format("\"point\":{{\"step\":{},\"loss\":{}}}", step, loss ? number_text(*loss) : "null"));
}

}  // namespace muster::train
