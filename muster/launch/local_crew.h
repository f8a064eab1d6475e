// Processes of this host, started by this process itself.
#pragma once

#include <array>
#include <map>
#include <string>

#include "muster/launch/crew.h"
#include "muster/net/net.h"

namespace muster::launch {

class LocalCrew final : public Crew {
 public:
  // Files lie in `run_folder`, which is there.
  explicit LocalCrew(std::string run_folder) : run_folder_(std::move(run_folder)) {}

  void set_listener(CrewListener& listener) override { listener_ = &listener; }
  void make_files(const std::vector<FileSpec>& files) override;
  void start(std::size_t process, const ProcessSpec& spec) override;
  void signal(std::size_t process, int number) override;
  void add_polled(std::vector<pollfd>& polled, bool takes_output) const override;
  void take(std::span<const pollfd> polled) override;
  bool take_child_end(pid_t pid, int wait_status) override;
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

  void take_output(std::size_t process, Child& child, Stream stream);
  void drain(std::size_t process, Child& child);

  std::string run_folder_;
  std::vector<net::Descriptor> secrets_;  // files of the folder that are kept in memory
  CrewListener* listener_ = nullptr;
  std::map<std::size_t, Child> children_;
};

}  // namespace muster::launch
