// The processes of another host, started there by an agent that ssh has started.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/launch/crew.h"
#include "muster/launch/hosts/agent_messages.h"
#include "muster/launch/hosts/ssh.h"
#include "muster/launch/lines.h"
#include "muster/net/net.h"

namespace muster::launch {

class AgentCrew final : public Crew {
 public:
  // Starts ssh; what comes of it is told by hello() and loss(), as take() goes on. `folder` is where the
  // processes start there; `clock` is borrowed.
  static Result<std::unique_ptr<AgentCrew>> start(std::string host, const std::string& folder,
                                                  const SshOptions& options, const Clock& clock);
  ~AgentCrew() override;

  const std::string& host() const { return host_; }
  // What the agent says when it is there.
  const std::optional<agent::Hello>& hello() const { return hello_; }
  // Free ports there, kept until the agent ends: the answer is in ports().
  void reserve(std::uint32_t count, std::uint16_t min, std::uint16_t max);
  bool awaits_ports() const { return awaits_ports_; }
  const std::vector<std::uint16_t>& ports() const { return ports_; }
  // Why the host is lost; empty: it is not.
  const std::string& loss() const { return loss_; }
  // For who does not reap all children of this process: looks for the end of ssh, for a moment.
  void reap();

  void set_listener(CrewListener& listener) override;
  void make_files(const std::vector<FileSpec>& files) override;
  void start(std::size_t process, const ProcessSpec& spec) override;
  void signal(std::size_t process, int number) override;
  void add_polled(std::vector<pollfd>& polled, bool takes_output) const override;
  void take(std::span<const pollfd> polled) override;
  bool take_child_end(pid_t pid, int wait_status) override;
  std::optional<TimePoint> wake_at() const override;
  void begin_end() override;
  bool has_ended() const override { return ssh_pid_ < 0; }
  bool has_closed_its_output() const { return !output_; }

 private:
  AgentCrew(std::string host, const SshOptions& options, const Clock& clock)
      : clock_(clock), host_(std::move(host)), options_(options) {}

  bool watches_silence() const;
  void watch_silence(TimePoint now);
  void note(std::string_view line);
  void send(const agent::Message& message);
  void write_some();
  bool take_output();
  bool take_words();
  void take_bytes(std::string_view bytes);
  void take_frames();
  void take_message(agent::Message message);
  void lose(std::string reason);

  const Clock& clock_;
  std::string host_;
  SshOptions options_;
  CrewListener* listener_ = nullptr;
  pid_t ssh_pid_ = -1;
  net::Descriptor input_, output_, error_;  // of ssh
  std::string queue_;                       // for the agent
  TimePoint heartbeat_at_ = clock_.now();
  TimePoint heard_at_ = heartbeat_at_;
  bool is_silence_told_ = false;
  std::optional<std::string> noise_ = std::string{};  // before the greeting
  net::FrameDecoder decoder_{agent::payload_size_max};
  LineBuffer error_lines_;
  std::deque<std::string> said_;  // by ssh and the shell there, the last lines
  std::optional<agent::Hello> hello_;
  std::vector<std::uint16_t> ports_;
  bool awaits_ports_ = false;
  std::string loss_;
  bool is_ending_ = false;
  bool has_gone_ = false;
};

}  // namespace muster::launch
