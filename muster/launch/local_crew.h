// Processes of this host, started by this process itself.
#pragma once

#include <array>
#include <map>
#include <string>

#include "muster/launch/crew.h"
#include "muster/launch/preload/preloader.h"
#include "muster/net/net.h"

namespace muster::launch {

class LocalCrew final : public Crew, private PreloaderListener {
 public:
  // Files lie in `run_folder`, which is there.
  LocalCrew(std::string run_folder, const Clock& clock)
      : run_folder_(std::move(run_folder)), preloader_(*this, clock) {}

  void set_listener(CrewListener& listener) override { listener_ = &listener; }
  void make_files(const std::vector<FileSpec>& files) override;
  void start(std::size_t process, const ProcessSpec& spec) override;
  void signal(std::size_t process, int number) override;
  void add_polled(std::vector<pollfd>& polled, bool takes_output) const override;
  void take(std::span<const pollfd> polled) override;
  bool take_child_end(pid_t pid, int wait_status) override;
  std::optional<TimePoint> wake_at() const override { return preloader_.wake_at(); }
  void begin_end() override {}  // kill_descendants() of its process does it, for all crews at once
  bool has_ended() const override { return true; }

  // What lies in the pipes still. Their writers may live on: no waiting.
  void drain();

 private:
  struct Child {
    pid_t pid = -1;
    bool has_ended = false;
    std::array<net::Descriptor, 2> outputs = {};  // by Stream
  };

  void on_forked(std::size_t process, ChildProcess child) override;
  void on_not_forked(std::size_t process, const Error& error) override {
    listener_->on_start_failure(process, error);
  }
  void on_cancelled(std::size_t process, int wait_status) override {
    listener_->on_end(process, wait_status);
  }
  void on_import_output(std::size_t process, Stream stream, std::string_view bytes) override {
    listener_->on_output(process, stream, bytes);
  }
  void on_preloader_note(std::string_view line) override { listener_->on_note(*this, line); }

  std::map<std::size_t, Child>::iterator find(pid_t pid);
  void take_output(std::size_t process, Child& child, Stream stream);
  void drain(std::size_t process, Child& child);

  std::string run_folder_;
  std::vector<net::Descriptor> secrets_;  // files of the folder that are kept in memory
  CrewListener* listener_ = nullptr;
  std::map<std::size_t, Child> children_;
  Preloader preloader_;
};

}  // namespace muster::launch
