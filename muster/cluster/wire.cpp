#include "muster/cluster/wire.h"

#include <fmt/format.h>

#include "muster/cluster/stats_wire.h"
#include "muster/cluster/variables.h"

namespace muster::cluster {
namespace {

using net::ByteReader;
using net::ByteWriter;

// The frame types, in the order of MessageBody's alternatives.
constexpr std::uint16_t type_count = std::variant_size_v<MessageBody>;
constexpr std::string_view type_names[type_count] = {
    "Register",   "Accept",        "Refuse",    "Waiting",  "RosterReady",   "Beat",     "PeerGone",
    "Leave",      "LeaveAck",      "Ended",     "EndedAck", "EpochLost",     "Rejoin",   "LinkLost",
    "Stuck",      "StatusRequest", "Status",    "Echo",     "MeetDoctors",   "Doctors",  "Parameters",
    "EndedEarly", "StacksRequest", "AskStacks", "Stacks",   "ProcessStacks", "StacksEnd"};
constexpr std::uint8_t code_max = static_cast<std::uint8_t>(Code::internal);
constexpr std::string Member::*member_texts[] = {&Member::node_id,       &Member::host_key,
                                                 &Member::address,       &Member::local_name,
                                                 &Member::process_space, &Member::host_name};
// A member's numbers and the lengths of its texts.
constexpr std::size_t member_size_bytes_min = 1 + 4 + 2 + 4 + 8 + 8 + 1 + std::size(member_texts) * 4;
// Of Status and of Doctors.
constexpr std::size_t status_node_size_bytes_min =
    1 + 4 + 4 + 1 + 8 + 8 + 26 + 8 + 2 * 4 + stats_size_bytes_min + pace_size_bytes;
constexpr std::size_t doctor_size_bytes_min = 2 * 4 + 2;
// Bits of a byte of flags.
constexpr std::uint8_t flag_named = 1;
constexpr std::uint8_t flag_left = 2;
constexpr std::uint8_t flag_recovers = 1;
constexpr std::uint8_t flag_epoch_lost = 2;
constexpr std::uint8_t flag_strict = 4;
// The lengths of a trait's texts.
constexpr std::size_t trait_size_bytes_min = 2 * 4;
constexpr std::size_t found_job_size_bytes_min = 8 + 4 + 1 + 8 + 8 + 1 + 3 * 4;
constexpr std::int32_t status_unknown = -1;
constexpr std::int32_t status_max = 0xffff;  // of waitpid()
constexpr std::uint8_t flag_has_rank = 1;
constexpr std::uint8_t flag_connected = 2;
constexpr std::uint8_t flag_done = 4;
constexpr std::uint8_t flag_done_job = 1;
constexpr std::uint8_t flag_in_use = 2;
constexpr std::uint8_t flag_leaves = 1;
constexpr std::uint8_t flag_one_left = 2;
constexpr std::uint8_t flag_waits_for = 4;

std::uint8_t flag(std::uint8_t bit, bool is_set) { return is_set ? bit : std::uint8_t{0}; }

void write(ByteWriter& out, const Member& member) {
  out.number(static_cast<std::uint8_t>(member.role));
  out.number(member.rank);
  out.number(member.data_port);
  out.number(static_cast<std::uint32_t>(member.pid));
  for (const std::uint64_t number : {member.incarnation, member.cores_key}) out.number(number);
  out.number(static_cast<std::uint8_t>(flag(flag_named, member.is_named) | flag(flag_left, member.has_left)));
  for (const auto text : member_texts) out.text(member.*text);
}

void write(ByteWriter& out, const Failure& failure) {
  out.number(static_cast<std::uint8_t>(failure.code));
  out.number(static_cast<std::uint32_t>(failure.exit_code));
  out.text(cut(failure.message, words_limit_bytes));
}

void write(ByteWriter& out, const Progress& progress) {
  out.number(progress.calls);
  out.number(progress.collectives);
  out.number(static_cast<std::uint8_t>(progress.has_point));
  out.number(progress.kept_calls);
}

void write(ByteWriter& out, const Activity& activity) {
  out.number(static_cast<std::uint8_t>(activity.phase));
  out.number(static_cast<std::uint8_t>(activity.call));
  out.number(activity.call_number);
  out.number(activity.finished);
  out.number(activity.train_epoch);
  out.number(activity.awaited.first);
  out.number(activity.awaited.count);
  if (activity.phase != WorkPhase::serving) return;
  out.number(activity.serving.rows);
  out.number(activity.serving.size_bytes);
  out.number(activity.serving.updates);
  out.number(activity.serving.waiting);
}

void write(ByteWriter& out, const message::Doctor& doctor) {
  out.text(doctor.host);
  out.text(doctor.address);
  out.number(doctor.port);
}

void write(ByteWriter& out, const message::Status::Node& node) {
  out.number(static_cast<std::uint8_t>(node.role));
  out.number(node.rank);
  out.number(static_cast<std::uint32_t>(node.pid));
  out.number(static_cast<std::uint8_t>(flag(flag_has_rank, node.has_rank) |
                                       flag(flag_connected, node.is_connected) |
                                       flag(flag_done, node.has_left)));
  out.number(node.epoch);
  out.number(node.step);
  write(out, node.activity);
  out.number(static_cast<std::uint64_t>(node.silence.count()));
  out.text(node.node_id);
  out.text(node.address);
  write_stats(out, node.stats);
  write_pace(out, node.pace);
}

void write(ByteWriter& out, const std::vector<Member>& members) {
  out.number(static_cast<std::uint32_t>(members.size()));
  for (const Member& member : members) write(out, member);
}

void write(ByteWriter& out, const Traits& traits) {
  const std::size_t count = std::min(traits.size(), traits_max);
  out.number(static_cast<std::uint32_t>(count));
  for (const Trait& trait : std::span(traits).first(count)) {
    out.text(cut(trait.key, name_limit_bytes));
    out.text(cut(trait.value, name_limit_bytes));
  }
}

void write(ByteWriter& out, const FoundJob& job) {
  out.number(job.job_id);
  out.number(job.worker_num);
  out.number(static_cast<std::uint8_t>(job.seed.has_value()));
  if (job.seed) out.number(*job.seed);
  out.number(job.finished_calls);
  out.number(job.epoch);
  out.number(static_cast<std::uint8_t>(flag(flag_done_job, job.is_done) | flag(flag_in_use, job.is_in_use)));
  const std::size_t count = std::min(job.ranks.size(), found_ranks_max);
  out.number(static_cast<std::uint32_t>(count));
  for (const std::uint32_t rank : std::span(job.ranks).first(count)) out.number(rank);
  out.text(cut(job.newest, name_limit_bytes));
  out.text(cut(job.folder, path_limit_bytes));
}

void write(ByteWriter& out, const MembershipReport& memory) {
  out.number(static_cast<std::uint8_t>(memory.fresh));
  out.number(memory.seed);
  out.number(memory.finished_calls);
  out.number(memory.finished_collectives);
  out.number(memory.roster_epoch);
  const std::size_t told = std::min(memory.incarnations.size(), members_told_max);
  out.number(static_cast<std::uint32_t>(told));
  for (const std::uint64_t incarnation : std::span(memory.incarnations).first(told)) out.number(incarnation);
  const std::size_t count = std::min(memory.found.size(), found_jobs_max);
  out.number(static_cast<std::uint32_t>(count));
  for (const FoundJob& job : std::span(memory.found).first(count)) write(out, job);
}

void write(ByteWriter& out, const message::Register& body) {
  write(out, body.member);
  for (const std::uint64_t part : body.secret) out.number(part);
  out.number(body.worker_num);
  out.number(body.server_num);
  out.number(static_cast<std::uint8_t>(flag(flag_recovers, body.recovers) |
                                       flag(flag_epoch_lost, body.epoch_lost) |
                                       flag(flag_strict, body.strict)));
  write(out, body.traits);
  write(out, body.memory);
}
void write(ByteWriter& out, const message::Accept& body) {
  out.number(static_cast<std::uint32_t>(body.beat_interval.count()));
  out.number(static_cast<std::uint32_t>(body.pid));
  out.text(body.process_space);
}
void write(ByteWriter& out, const message::Refuse& body) { write(out, body.failure); }
void write(ByteWriter& out, const message::Waiting& body) { out.text(cut(body.text, words_limit_bytes)); }
void write(ByteWriter& out, const message::RosterReady& body) {
  out.number(body.roster->epoch);
  out.number(body.roster->job_id);
  out.number(body.roster->seed);
  write(out, body.roster->workers);
  write(out, body.roster->servers);
  out.number(static_cast<std::uint8_t>(body.roster->recovers));
  out.number(body.roster->finished_calls);
  out.number(body.roster->finished_collectives);
}
void write(ByteWriter& out, const message::Beat& body) {
  out.number(body.step);
  write(out, body.progress);
  write(out, body.activity);
  out.number(static_cast<std::uint8_t>(flag(flag_leaves, body.leaves) |
                                       flag(flag_one_left, body.left.has_value()) |
                                       flag(flag_waits_for, body.waits_for.has_value())));
  for (const auto& rank : {body.left, body.waits_for})
    if (rank) out.number(*rank);
  write_stats(out, body.stats);
}
void write(ByteWriter& out, const message::PeerGone& body) {
  out.number(static_cast<std::uint8_t>(body.role));
  out.number(body.rank);
  out.number(body.incarnation);
  out.number(static_cast<std::uint32_t>(body.status.value_or(status_unknown)));
}
void write(ByteWriter& out, const message::Leave& body) {
  out.number(static_cast<std::uint32_t>(body.status));
  out.number(body.step);
  out.text(cut(body.reason, words_limit_bytes));
}
void write(ByteWriter&, const message::LeaveAck&) {}
void write(ByteWriter& out, const message::Ended& body) {
  out.number(static_cast<std::uint8_t>(body.failure.has_value()));
  if (body.failure) write(out, *body.failure);
}
void write(ByteWriter&, const message::EndedAck&) {}
void write(ByteWriter& out, const message::EpochLost& body) { write(out, body.reason); }
void write(ByteWriter& out, const message::Rejoin& body) {
  out.number(body.endpoint.port);
  out.text(body.endpoint.local_name);
  write(out, body.progress);
}
void write(ByteWriter& out, const message::LinkLost& body) { out.text(cut(body.reason, words_limit_bytes)); }
void write(ByteWriter& out, const message::Stuck& body) { out.text(cut(body.text, words_limit_bytes)); }
void write(ByteWriter&, const message::StatusRequest&) {}
void write(ByteWriter& out, const message::Status& body) {
  out.number(static_cast<std::uint8_t>(body.state));
  out.number(static_cast<std::uint8_t>(body.recovers));
  out.number(body.worker_num);
  out.number(body.server_num);
  out.number(static_cast<std::uint64_t>(body.age.count()));
  out.number(static_cast<std::uint64_t>(body.without_step.count()));
  out.text(cut(body.text, words_limit_bytes));
  out.number(static_cast<std::uint32_t>(body.slow.size()));
  for (const SlowRank& slow : body.slow) write_slow_rank(out, slow);
  out.number(static_cast<std::uint32_t>(body.nodes.size()));
  for (const message::Status::Node& node : body.nodes) write(out, node);
}
void write(ByteWriter& out, const message::Echo& body) {
  out.number(body.number);
  out.number(body.wall_clock_us);
  out.text(cut(body.filling, echo_limit_bytes));
}
void write(ByteWriter& out, const message::MeetDoctors& body) { write(out, body.self); }
void write(ByteWriter& out, const message::Doctors& body) {
  out.number(static_cast<std::uint32_t>(body.doctors.size()));
  for (const message::Doctor& doctor : body.doctors) write(out, doctor);
}
void write(ByteWriter& out, const message::Parameters& body) {
  const ParameterReport& report = body.report;
  out.number(report.series);
  out.number(report.step);
  out.number(static_cast<std::uint8_t>(report.reduces));
  out.number(static_cast<std::uint32_t>(report.hashes.size()));
  for (const std::uint32_t hash : report.hashes) out.number(hash);
  out.number(static_cast<std::uint32_t>(report.names.size()));
  for (const std::string& name : report.names) out.text(cut(name, name_limit_bytes));
}
void write(ByteWriter& out, const message::EndedEarly& body) {
  out.text(cut(body.node_id, name_limit_bytes));
}
void write(ByteWriter& out, const message::StacksRequest& body) {
  out.number(static_cast<std::uint8_t>(body.role));
  out.number(static_cast<std::uint8_t>(body.rank.has_value()));
  if (body.rank) out.number(*body.rank);
}
void write(ByteWriter& out, const message::AskStacks& body) {
  out.number(static_cast<std::uint8_t>(body.is_answered));
}
void write(ByteWriter& out, const message::Stacks& body) { out.text(cut(body.text, stacks_limit_bytes)); }
void write(ByteWriter& out, const message::ProcessStacks& body) {
  out.number(static_cast<std::uint8_t>(body.role));
  out.number(body.rank);
  out.number(static_cast<std::uint8_t>(body.has_rank));
  out.number(static_cast<std::uint32_t>(body.pid));
  for (const std::string* name : {&body.node_id, &body.address}) out.text(cut(*name, name_limit_bytes));
  for (const std::string* words : {&body.doing, &body.problem}) out.text(cut(*words, words_limit_bytes));
  out.text(cut(body.text, stacks_limit_bytes));
}
void write(ByteWriter& out, const message::StacksEnd& body) { out.number(body.left_out); }

// Reads values that may be out of their range; the first such value makes the message unusable. Texts come
// out as they can be shown to people, whichever process made them: no caller has to think of it.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> payload) : in_(payload) {}

  std::uint32_t u32() { return in_.number<std::uint32_t>(); }
  std::uint64_t u64() { return in_.number<std::uint64_t>(); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  WaitStatus wait_status() {
    const std::int32_t status = i32();
    if (status == status_unknown) return std::nullopt;
    in_range_ = in_range_ && status >= 0 && status <= status_max;
    return status;
  }
  std::string name() { return text(name_limit_bytes, LineBreaks::escaped); }
  std::string line() { return text(words_limit_bytes, LineBreaks::escaped); }
  std::string table() { return text(words_limit_bytes, LineBreaks::kept); }  // of a scheduler
  bool flag() { return up_to(1) == 1; }
  std::uint8_t up_to(std::uint8_t max) {
    const auto value = in_.number<std::uint8_t>();
    in_range_ = in_range_ && value <= max;
    return value <= max ? value : std::uint8_t{0};
  }
  Role role() { return static_cast<Role>(up_to(static_cast<std::uint8_t>(Role::server))); }

  Member member() {
    Member member;
    member.role = role();
    member.rank = u32();
    member.data_port = in_.number<std::uint16_t>();
    member.pid = i32();
    member.incarnation = u64();
    member.cores_key = u64();
    const std::uint8_t bits = up_to(flag_named | flag_left);
    member.is_named = (bits & flag_named) != 0;
    member.has_left = (bits & flag_left) != 0;
    for (const auto text : member_texts) member.*text = name();
    return member;
  }
  Failure failure() {
    Failure failure;
    failure.code = static_cast<Code>(up_to(code_max));
    failure.exit_code = i32();
    failure.message = table();
    return failure;
  }
  Progress progress() {
    Progress progress;
    progress.calls = u64();
    progress.collectives = u64();
    progress.has_point = flag();
    progress.kept_calls = u64();
    return progress;
  }
  Activity activity() {
    Activity activity;
    activity.phase = static_cast<WorkPhase>(up_to(static_cast<std::uint8_t>(WorkPhase::serving)));
    activity.call = static_cast<CallKind>(up_to(static_cast<std::uint8_t>(last_call_kind)));
    activity.call_number = u64();
    activity.finished = u64();
    activity.train_epoch = u64();
    activity.awaited.first = u32();
    activity.awaited.count = u32();
    if (activity.phase != WorkPhase::serving) return activity;
    activity.serving.rows = u64();
    activity.serving.size_bytes = u64();
    activity.serving.updates = u64();
    activity.serving.waiting = u32();
    return activity;
  }
  // A time that fits into a clock, however often it is added up.
  std::chrono::milliseconds time() {
    constexpr std::uint64_t limit = std::uint64_t{1} << 42;
    const std::uint64_t count = u64();
    in_range_ = in_range_ && count <= limit;
    return std::chrono::milliseconds(count <= limit ? count : 0);
  }
  std::optional<ProcessStats> stats() { return read_stats(in_, in_range_); }
  Pace pace() { return read_pace(in_); }
  SlowRank slow_rank() { return read_slow_rank(in_, in_range_); }
  message::Doctor doctor() {
    message::Doctor doctor;
    doctor.host = name();
    doctor.address = name();
    doctor.port = in_.number<std::uint16_t>();
    return doctor;
  }
  message::Status::Node status_node() {
    message::Status::Node node;
    node.role = role();
    node.rank = u32();
    node.pid = i32();
    const std::uint8_t bits = up_to(flag_has_rank | flag_connected | flag_done);
    node.has_left = (bits & flag_done) != 0;
    node.has_rank = (bits & flag_has_rank) != 0;
    node.is_connected = (bits & flag_connected) != 0;
    node.epoch = u64();
    node.step = u64();
    node.activity = activity();
    node.silence = time();
    node.node_id = name();
    node.address = name();
    node.stats = stats();
    node.pace = pace();
    return node;
  }
  std::vector<Member> members(Role expected) {
    std::vector<Member> members(in_.count(worker_num_max, member_size_bytes_min));
    for (std::uint32_t rank = 0; rank < members.size() && in_.ok(); ++rank) {
      members[rank] = member();
      in_range_ = in_range_ && members[rank].rank == rank && members[rank].role == expected;
    }
    return members;
  }

  Traits traits() {
    Traits traits(in_.count(traits_max, trait_size_bytes_min));
    for (Trait& trait : traits) {
      trait.key = name();
      trait.value = name();
    }
    return traits;
  }

  FoundJob found_job() {
    FoundJob job;
    job.job_id = u64();
    job.worker_num = u32();
    if (flag()) job.seed = u64();
    job.finished_calls = u64();
    job.epoch = u64();
    const std::uint8_t bits = up_to(flag_done_job | flag_in_use);
    job.is_done = (bits & flag_done_job) != 0;
    job.is_in_use = (bits & flag_in_use) != 0;
    job.ranks.resize(in_.count(found_ranks_max, sizeof(std::uint32_t)));
    for (std::uint32_t& rank : job.ranks) rank = u32();
    job.newest = name();
    job.folder = text(path_limit_bytes, LineBreaks::escaped);
    return job;
  }
  MembershipReport memory() {
    MembershipReport memory;
    memory.fresh = flag();
    memory.seed = u64();
    memory.finished_calls = u64();
    memory.finished_collectives = u64();
    memory.roster_epoch = u64();
    memory.incarnations.resize(in_.count(members_told_max, sizeof(std::uint64_t)));
    for (std::uint64_t& incarnation : memory.incarnations) incarnation = u64();
    memory.found.resize(in_.count(found_jobs_max, found_job_size_bytes_min));
    for (FoundJob& job : memory.found) job = found_job();
    return memory;
  }

  void read(message::Register& body) {
    body.member = member();
    for (std::uint64_t& part : body.secret) part = u64();
    body.worker_num = u32();
    body.server_num = u32();
    const std::uint8_t bits = up_to(flag_recovers | flag_epoch_lost | flag_strict);
    body.recovers = (bits & flag_recovers) != 0;
    body.epoch_lost = (bits & flag_epoch_lost) != 0;
    body.strict = (bits & flag_strict) != 0;
    body.traits = traits();
    body.memory = memory();
  }
  void read(message::Accept& body) {
    body.beat_interval = std::chrono::milliseconds(u32());
    body.pid = i32();
    body.process_space = name();
  }
  void read(message::Refuse& body) { body.failure = failure(); }
  void read(message::Waiting& body) { body.text = table(); }
  void read(message::RosterReady& body) {
    auto roster = std::make_shared<Roster>();
    roster->epoch = u64();
    roster->job_id = u64();
    roster->seed = u64();
    roster->workers = members(Role::worker);
    roster->servers = members(Role::server);
    roster->recovers = flag();
    roster->finished_calls = u64();
    roster->finished_collectives = u64();
    body.roster = std::move(roster);
  }
  void read(message::Beat& body) {
    body.step = u64();
    body.progress = progress();
    body.activity = activity();
    const std::uint8_t bits = up_to(flag_leaves | flag_one_left | flag_waits_for);
    body.leaves = (bits & flag_leaves) != 0;
    if ((bits & flag_one_left) != 0) body.left = u32();
    if ((bits & flag_waits_for) != 0) body.waits_for = u32();
    body.stats = stats();
  }
  void read(message::PeerGone& body) {
    body.role = role();
    body.rank = u32();
    body.incarnation = u64();
    body.status = wait_status();
  }
  void read(message::Leave& body) {
    body.status = i32();
    body.step = u64();
    body.reason = line();
  }
  void read(message::LeaveAck&) {}
  void read(message::Ended& body) {
    if (flag()) body.failure = failure();
  }
  void read(message::EndedAck&) {}
  void read(message::EpochLost& body) { body.reason = failure(); }
  void read(message::Rejoin& body) {
    body.endpoint.port = in_.number<std::uint16_t>();
    body.endpoint.local_name = name();
    body.progress = progress();
  }
  void read(message::LinkLost& body) { body.reason = line(); }
  void read(message::Stuck& body) { body.text = table(); }
  void read(message::StatusRequest&) {}
  void read(message::Status& body) {
    body.state =
        static_cast<message::Status::State>(up_to(static_cast<std::uint8_t>(message::Status::State::ended)));
    body.recovers = flag();
    body.worker_num = u32();
    body.server_num = u32();
    body.age = time();
    body.without_step = time();
    body.text = table();
    body.slow.resize(in_.count(status_nodes_max, slow_rank_size_bytes));
    for (std::size_t i = 0; i < body.slow.size() && in_.ok(); ++i) body.slow[i] = slow_rank();
    body.nodes.resize(in_.count(status_nodes_max, status_node_size_bytes_min));
    for (std::size_t i = 0; i < body.nodes.size() && in_.ok(); ++i) body.nodes[i] = status_node();
  }
  void read(message::Echo& body) {
    body.number = u64();
    body.wall_clock_us = u64();
    body.filling = in_.text(echo_limit_bytes);
  }
  void read(message::MeetDoctors& body) { body.self = doctor(); }
  void read(message::Doctors& body) {
    body.doctors.resize(in_.count(doctors_max, doctor_size_bytes_min));
    for (std::size_t i = 0; i < body.doctors.size() && in_.ok(); ++i) body.doctors[i] = doctor();
  }
  void read(message::Parameters& body) {
    ParameterReport& report = body.report;
    report.series = u64();
    report.step = u64();
    report.reduces = flag();
    report.hashes.resize(in_.count(parameter_hashes_max, sizeof(std::uint32_t)));
    for (std::uint32_t& hash : report.hashes) hash = u32();
    report.names.resize(in_.count(parameter_hashes_max, sizeof(std::uint32_t)));
    for (std::string& each : report.names) each = name();
  }
  void read(message::EndedEarly& body) { body.node_id = name(); }
  void read(message::StacksRequest& body) {
    body.role = role();
    if (flag()) body.rank = u32();
  }
  void read(message::AskStacks& body) { body.is_answered = flag(); }
  void read(message::Stacks& body) { body.text = text(stacks_limit_bytes, LineBreaks::kept); }
  void read(message::ProcessStacks& body) {
    body.role = role();
    body.rank = u32();
    body.has_rank = flag();
    body.pid = i32();
    for (std::string* each : {&body.node_id, &body.address}) *each = name();
    for (std::string* each : {&body.doing, &body.problem}) *each = line();
    body.text = text(stacks_limit_bytes, LineBreaks::kept);
  }
  void read(message::StacksEnd& body) { body.left_out = u32(); }

  Result<> finish(std::string_view what) const {
    MUSTER_TRY_VOID(in_.finish(what));
    if (!in_range_)
      return fail(Code::corrupt, fmt::format("a value of a {} message is out of its range", what));
    return {};
  }

 private:
  std::string text(std::size_t limit, LineBreaks breaks) {
    return std::string(cut(printable(in_.text(limit), breaks), limit));
  }

  ByteReader in_;
  bool in_range_ = true;
};

template <std::size_t index = 0>
MessageBody body_of(std::size_t wanted) {
  if constexpr (index < type_count) {
    if (wanted == index) return MessageBody(std::in_place_index<index>);
    return body_of<index + 1>(wanted);
  } else {
    return {};
  }
}

}  // namespace

std::vector<std::byte> encode_message(const Message& message) {
  ByteWriter out;
  std::visit([&](const auto& body) { write(out, body); }, message.body);
  const net::FrameHeader header{.type = static_cast<std::uint16_t>(message_type_first + message.body.index()),
                                .epoch = message.epoch,
                                .job_id = message.job_id};
  return net::encode_frame(header, out.bytes());
}

Result<Message> decode_message(const net::Frame& frame) {
  const std::uint16_t type = frame.header.type;
  if (type < message_type_first || type >= message_type_first + type_count)
    return fail(Code::corrupt, fmt::format("frame type {:#06x} is no message of a cluster", type));
  const std::size_t index = type - message_type_first;
  Message message{.job_id = frame.header.job_id, .epoch = frame.header.epoch, .body = body_of(index)};
  Reader in(frame.payload);
  std::visit([&](auto& body) { in.read(body); }, message.body);
  MUSTER_TRY_VOID(in.finish(type_names[index]));
  return message;
}

}  // namespace muster::cluster
