#include "muster/launch/settings/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <utility>

#include "muster/cluster/cluster.h"
#include "muster/launch/settings/toml.h"

namespace muster::launch {
namespace {

constexpr std::size_t arguments_max = 65'536;

class Reader {
 public:
  Reader(const toml::table& table, const JobFileName& file) : table_(table), file_(file) {}

  Result<PartialSettings> read() {
    MUSTER_TRY_VOID(read_texts());
    MUSTER_TRY_VOID(read_numbers());
    MUSTER_TRY_VOID(read_open());
    MUSTER_TRY_VOID(read_hosts());
    MUSTER_TRY_VOID(read_command());
    MUSTER_TRY_VOID(read_tail());
    MUSTER_TRY_VOID(read_preload());
    MUSTER_TRY_VOID(read_environment());
    MUSTER_TRY_VOID(refuse_unauthorized());
    return said_;
  }

 private:
  struct Text {
    const char* key;
    PartialSettings::Said<std::string> PartialSettings::*value;
    bool is_path = false;
  };
  struct Number {
    const char* key;
    PartialSettings::Said<std::int64_t> PartialSettings::*value;
  };

  std::string origin(std::string_view key) const { return fmt::format("{}: {}", file_.name, key); }

  tl::unexpected<Error> wrong(const toml::node& node, std::string_view key, std::string_view what) const {
    return fail(Code::invalid_argument,
                fmt::format("{}, line {}: {} {}", file_.name, node.source().begin.line, key, what));
  }

  const toml::node* take(std::string_view key) {
    known_.push_back(key);
    return table_.get(key);
  }

  std::string path(const std::string& name) const {
    if (name.starts_with("fd:")) return name;
    return (std::filesystem::path(file_.folder) / name).lexically_normal().string();
  }

  Result<> read_texts() {
    constexpr auto texts = std::to_array<Text>({
        {"preset", &PartialSettings::preset},
        {"scheduler", &PartialSettings::scheduler},
        {"restart", &PartialSettings::restart},
        {"style", &PartialSettings::style},
        {"ssh", &PartialSettings::ssh},
        {"rank_table", &PartialSettings::rank_table, true},
        {"logs", &PartialSettings::log_folder, true},
        {"metrics_port", &PartialSettings::metrics_port, false},
        {"dashboard", &PartialSettings::dashboard, false},
        {"recovery", &PartialSettings::recovery_folder, true},
        {"tls_config", &PartialSettings::tls_config, true},
        {"client_password_file", &PartialSettings::client_password_file, true},
        {"server_password_file", &PartialSettings::server_password_file, true},
        {"token_file", &PartialSettings::token_file, true},
    });
    for (const Text& text : texts) {
      const toml::node* node = take(text.key);
      if (node == nullptr) continue;
      const auto value = node->value<std::string>();
      if (!node->is_string() || value->empty()) return wrong(*node, text.key, "has to be a text");
      said_.*text.value = Setting<std::string>{text.is_path ? path(*value) : *value, origin(text.key)};
    }
    return {};
  }

  Result<> read_numbers() {
    constexpr auto numbers = std::to_array<Number>({
        {"slots", &PartialSettings::slots},
        {"servers", &PartialSettings::servers},
        {"host_count", &PartialSettings::host_count},
        {"host_index", &PartialSettings::self},
        {"port", &PartialSettings::port},
        {"restarts", &PartialSettings::max_restarts},
    });
    for (const Number& number : numbers) {
      const toml::node* node = take(number.key);
      if (node == nullptr) continue;
      if (!node->is_integer()) return wrong(*node, number.key, "has to be a whole number");
      said_.*number.value = Setting<std::int64_t>{*node->value<std::int64_t>(), origin(number.key)};
    }
    return {};
  }

  Result<> read_open() {
    const toml::node* node = take("open");
    if (node == nullptr) return {};
    if (!node->is_boolean()) return wrong(*node, "open", "has to be true or false");
    said_.is_open = Setting<bool>{*node->value<bool>(), origin("open")};
    return {};
  }

  Result<std::vector<std::string>> texts_of(const toml::node& node, std::string_view key) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) return wrong(node, key, "has to be a list of texts");
    if (array->size() > arguments_max)
      return wrong(node, key, fmt::format("has more than {} entries", arguments_max));
    std::vector<std::string> texts;
    for (const toml::node& entry : *array) {
      if (!entry.is_string()) return wrong(entry, key, "has to be a list of texts");
      texts.push_back(*entry.value<std::string>());
    }
    return texts;
  }

  Result<> read_hosts() {
    const toml::node* node = take("hosts");
    if (node == nullptr) return {};
    MUSTER_TRY(const auto texts, texts_of(*node, "hosts"));
    Setting<std::vector<HostSlots>> hosts{{}, origin("hosts")};
    for (const std::string& text : texts) {
      const auto host = parse_hosts(text);
      if (!host) return wrong(*node, "hosts:", host.error().message);
      hosts.value.insert(hosts.value.end(), host->begin(), host->end());
    }
    said_.hosts = std::move(hosts);
    if (!table_.contains("host_index")) said_.reach = Setting<Reach>{Reach::ssh, origin("hosts")};
    return {};
  }

  Result<> read_command() {
    const toml::node* module = take("module");
    const toml::node* script = take("script");
    const toml::node* arguments = take("arguments");
    if (module != nullptr && script != nullptr)
      return wrong(*module, "module", "beside a script: leave one out");
    const toml::node* named = module != nullptr ? module : script;
    if (named == nullptr && arguments == nullptr) return {};
    if (named == nullptr) return wrong(*arguments, "arguments", "without a script");
    const char* const key = module != nullptr ? "module" : "script";
    if (!named->is_string()) return wrong(*named, key, "has to be a text");
    const std::string name = *named->value<std::string>();
    Setting<std::vector<std::string>> command{{}, origin(key)};
    command.value = module != nullptr ? std::vector<std::string>{std::string(module_flag), name}
                                      : std::vector{program_path(name)};
    if (arguments != nullptr) {
      MUSTER_TRY(const auto words, texts_of(*arguments, "arguments"));
      command.value.insert(command.value.end(), words.begin(), words.end());
    }
    said_.command = std::move(command);
    return {};
  }

  // A name without a folder may be one that is searched in PATH.
  std::string program_path(const std::string& name) const {
    std::error_code ignored;
    const std::string near = path(name);
    return name.find('/') != std::string::npos || std::filesystem::exists(near, ignored) ? near : name;
  }

  Result<> read_tail() {
    const toml::node* node = take("tail");
    if (node == nullptr) return {};
    const toml::array* ranks = node->as_array();
    Setting<std::vector<std::int64_t>> tail{{}, origin("tail")};
    if (ranks != nullptr)
      for (const toml::node& rank : *ranks)
        if (rank.is_integer()) tail.value.push_back(*rank.value<std::int64_t>());
    if (ranks == nullptr || tail.value.size() != ranks->size())
      return wrong(*node, "tail", "has to be a list of ranks");
    said_.tail = std::move(tail);
    return {};
  }

  Result<> read_preload() {
    const toml::node* node = take("preload");
    if (node == nullptr) return {};
    MUSTER_TRY(auto modules, texts_of(*node, "preload"));
    if (modules.empty()) return wrong(*node, "preload", "names no module");
    said_.preload = Setting<std::vector<std::string>>{std::move(modules), origin("preload")};
    return {};
  }

  Result<> read_environment() {
    const toml::node* node = take("environment");
    if (node == nullptr) return {};
    const toml::table* variables = node->as_table();
    if (variables == nullptr) return wrong(*node, "environment", "has to be a table of texts");
    for (const auto& [key, value] : *variables) {
      const std::string name(key.str());
      if (!value.is_string()) return wrong(value, fmt::format("environment.{}", name), "has to be a text");
      said_.environment.emplace(
          name, Setting<std::string>{*value.value<std::string>(), origin("environment." + name)});
    }
    return {};
  }

  Result<> refuse_unauthorized() const {
    for (const auto& [key, value] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      const auto meant = nearest_name(key.str(), known_);
      return wrong(value, key.str(),
                   meant ? fmt::format("is no setting: did you mean '{}'?", *meant)
                         : "is no setting: docs/formats/job.md lists them");
    }
    return {};
  }

  const toml::table& table_;
  const JobFileName& file_;
  std::vector<std::string_view> known_;
  PartialSettings said_;
};

// ---- Writing ----------------------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter{toml::value<std::string>(text), toml::format_flags::none};
  return out.str();
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + quoted(text);
  return "[" + list + "]";
}

std::string host_text(const HostSlots& host) {
  const bool has_colon = host.name.find(':') != std::string::npos;
  return fmt::format("{}:{}", has_colon ? "[" + host.name + "]" : host.name, host.slots);
}

class Writer {
 public:
  void line(const std::string& key, const std::string& value, const std::string& origin) {
    entries_.push_back({.key = key, .value = value, .origin = origin});
  }
  void text(const std::string& key, const Setting<std::string>& setting) {
    if (!setting.value.empty()) line(key, quoted(setting.value), setting.origin);
  }
  void number(const std::string& key, const Setting<std::int64_t>& setting) {
    line(key, std::to_string(setting.value), setting.origin);
  }
  void number(const std::string& key, const std::optional<Setting<std::int64_t>>& setting) {
    if (setting) number(key, *setting);
  }
  void variable(const std::string& name, const Setting<std::string>& setting) {
    entries_.push_back(
        {.key = name, .value = quoted(setting.value), .origin = setting.origin, .is_variable = true});
  }
  std::vector<JobFileEntry> take() { return std::move(entries_); }

 private:
  std::vector<JobFileEntry> entries_;
};

void write_hosts(Writer& writer, const JobSettings& job) {
  const auto& hosts = job.hosts;
  const bool have_names = std::all_of(hosts.value.begin(), hosts.value.end(),
                                      [](const HostSlots& host) { return !host.name.empty(); });
  if (have_names) {
    std::vector<std::string> texts;
    for (const HostSlots& host : hosts.value) texts.push_back(host_text(host));
    writer.line("hosts", quoted_list(texts), hosts.origin);
  } else if (hosts.value.size() > 1) {
    writer.line("host_count", std::to_string(hosts.value.size()), hosts.origin);
  }
  if (job.reach.value == Reach::each) writer.number("host_index", job.self);
  if (!have_names)
    writer.line("slots", std::to_string(hosts.value.front().slots),
                job.slots ? job.slots->origin : hosts.origin);
}

void write_command(Writer& writer, const Setting<std::vector<std::string>>& command) {
  const auto& words = command.value;
  const bool is_module = words.size() > 1 && words.front() == module_flag;
  writer.line(is_module ? "module" : "script", quoted(words[is_module ? 1 : 0]), command.origin);
  const auto arguments = words.begin() + (is_module ? 2 : 1);
  if (arguments != words.end())
    writer.line("arguments", quoted_list({arguments, words.end()}), command.origin);
}

}  // namespace

Result<PartialSettings> parse_job_file(std::string_view text, const JobFileName& file) {
  if (text.size() > job_file_bytes_max)
    return fail(Code::invalid_argument, fmt::format("{}: a job file of {} bytes: at most {}", file.name,
                                                    text.size(), job_file_bytes_max));
  const toml::parse_result parsed = toml::parse(text, file.name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(Code::invalid_argument,
                fmt::format("{}, line {}: {}", file.name, error.source().begin.line, error.description()));
  }
  return Reader(parsed.table(), file).read();
}

std::vector<JobFileEntry> job_file_entries(const JobSettings& job) {
  Writer writer;
  writer.text("preset", job.preset);
  write_command(writer, job.command);
  write_hosts(writer, job);
  if (job.reach.value == Reach::ssh) writer.text("ssh", job.ssh);
  if (job.scheduler) writer.text("scheduler", *job.scheduler);
  writer.number("port", job.port);
  writer.number("servers", job.servers);
  writer.number("restarts", job.max_restarts);
  if (job.restarts_group()) writer.text("restart", job.restart);
  writer.text("style", job.style);
  if (!job.preload.value.empty()) writer.line("preload", quoted_list(job.preload.value), job.preload.origin);
  writer.text("rank_table", job.rank_table);
  writer.text("logs", job.log_folder);
  writer.text("metrics_port", job.metrics_port);
  writer.text("dashboard", job.dashboard);
  writer.text("recovery", job.recovery_folder);
  if (!job.tail.value.empty())
    writer.line("tail", fmt::format("[{}]", fmt::join(job.tail.value, ", ")), job.tail.origin);
  writer.text("tls_config", job.tls_config);
  writer.text("client_password_file", job.client_password_file);
  writer.text("server_password_file", job.server_password_file);
  writer.text("token_file", job.token_file);
  if (job.is_open.value) writer.line("open", "true", job.is_open.origin);
  for (const auto& [name, value] : job.environment) writer.variable(name, value);
  return writer.take();
}

std::string job_file_text(const std::vector<JobFileEntry>& entries, WithOrigins origins) {
  std::string text;
  bool is_variable = false;
  for (const JobFileEntry& entry : entries) {
    if (entry.is_variable && !std::exchange(is_variable, true)) text += "\n[environment]\n";
    const std::string line =
        fmt::format("{} = {}", entry.is_variable ? quoted(entry.key) : entry.key, entry.value);
    text += origins == WithOrigins::yes ? fmt::format("{:<40}  # {}\n", line, entry.origin) : line + "\n";
  }
  return text;
}

std::string job_file_text(const JobSettings& job, WithOrigins origins) {
  return job_file_text(job_file_entries(job), origins);
}

}  // namespace muster::launch
