#include "muster/collective/ucx_port.h"

#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include <cstring>

#include "muster/collective/ucx/context.h"

namespace muster::ucx {
namespace {

using collective::UcxLibrary;
using collective::UcxMessage;
using collective::UcxPort;
using collective::UcxReceiver;

// Who closes a port whose other side does not answer waits no longer than this many turns.
constexpr int closing_turns_max = 100'000;
// The queue of UCX's shared memory has 64 parts of 8 KiB, of which a sender sees half come free at a time.
constexpr std::size_t memory_queue_bytes = 180 << 10;
constexpr std::size_t network_queue_bytes = 1 << 20;

class Port final : public UcxPort {
 public:
  Port(std::shared_ptr<Context> context, UcxReceiver& receiver)
      : context_(std::move(context)), receiver_(receiver) {}
  ~Port() override;

  Result<> open();
  const std::vector<std::byte>& address() const override { return address_; }
  Result<> connect(std::span<const std::byte> address) override;
  void send(Kind kind, UcxMessage& message) override;
  void flush(UcxMessage& flush) override;
  std::size_t queue_bytes() const override {
    return context_->has_shared_memory() && !context_->has_rdma() ? memory_queue_bytes : network_queue_bytes;
  }
  bool progress() override { return ucp_worker_progress(worker_) != 0; }
  bool arm() override { return ucp_worker_arm(worker_) == UCS_OK; }
  int fd() const override { return fd_; }
  void release(const std::byte* bytes) override {
    ucp_am_data_release(worker_, const_cast<std::byte*>(bytes));
  }
  const std::optional<Error>& failure() const override { return failure_; }

 private:
  Result<> hear(Kind kind, ucp_am_recv_callback_t callback);
  Result<> read_address();
  void follow(ucs_status_ptr_t request, UcxMessage& message);
  void fail_with(ucs_status_t status);
  static ucp_request_param_t parameters_of(UcxMessage& message);
  static void complete(void* request, ucs_status_t status, void* message);
  static void break_off(void* port, ucp_ep_h, ucs_status_t status) {
    static_cast<Port*>(port)->fail_with(status);
  }
  static ucs_status_t take_data(void* port, const void* header, std::size_t header_size, void* data,
                                std::size_t size, const ucp_am_recv_param_t* parameters);
  static ucs_status_t take_credit(void* port, const void* header, std::size_t header_size, void* data,
                                  std::size_t size, const ucp_am_recv_param_t* parameters);

  const std::shared_ptr<Context> context_;
  UcxReceiver& receiver_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  bool has_heard_ = false;  // from the other side: both have a connection
  int fd_ = -1;             // the worker's
  std::vector<std::byte> address_;
  std::optional<Error> failure_;
};

// UCX 1.13 ends the process by an assertion where a worker goes whose connection is still being made: until
// something has come from the other side it stays, with its context, until the process ends.
Port::~Port() {
  if (endpoint_ != nullptr && !has_heard_) {
    static_cast<void>(new std::shared_ptr<Context>(context_));
    return;
  }
  if (endpoint_ != nullptr) {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint_, &parameters);
    for (int i = 0; UCS_PTR_IS_PTR(closing) && i < closing_turns_max; ++i) {
      ucp_worker_progress(worker_);
      if (ucp_request_check_status(closing) != UCS_INPROGRESS) break;
    }
    if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  }
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
}

Result<> Port::open() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const auto status = ucp_worker_create(context_->get(), &parameters, &worker_); status != UCS_OK)
    return fail(error_of("cannot make a worker", status, context_.get()));
  if (const auto status = ucp_worker_get_efd(worker_, &fd_); status != UCS_OK)
    return fail(error_of("has nothing to wait for", status, context_.get()));
  MUSTER_TRY_VOID(hear(Kind::data, &Port::take_data));
  MUSTER_TRY_VOID(hear(Kind::credit, &Port::take_credit));
  return read_address();
}

Result<> Port::hear(Kind kind, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t parameters{};
  parameters.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                          UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  parameters.id = static_cast<unsigned>(kind);
  parameters.flags = UCP_AM_FLAG_WHOLE_MSG;
  parameters.cb = callback;
  parameters.arg = this;
  const auto status = ucp_worker_set_am_recv_handler(worker_, &parameters);
  if (status != UCS_OK) return fail(error_of("cannot receive", status, context_.get()));
  return {};
}

Result<> Port::read_address() {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &size); status != UCS_OK)
    return fail(error_of("has no address", status, context_.get()));
  const auto* const begin = reinterpret_cast<const std::byte*>(address);
  address_.assign(begin, begin + size);
  ucp_worker_release_address(worker_, address);
  return {};
}

Result<> Port::connect(std::span<const std::byte> address) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = context_->has_rdma() ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  parameters.err_handler = {.cb = &Port::break_off, .arg = this};
  const auto status = ucp_ep_create(worker_, &parameters, &endpoint_);
  if (status == UCS_OK) return {};
  endpoint_ = nullptr;
  Error error = error_of("cannot reach the other side", status, context_.get());
  if (status != UCS_ERR_UNREACHABLE)
    error.code = Code::peer_lost;  // there is a way, and no process at its end
  return fail(std::move(error));
}

void Port::fail_with(ucs_status_t status) {
  if (!failure_)
    failure_ = Error{Code::peer_lost, fmt::format("{}: {}", version_name(), ucs_status_string(status))};
}

ucp_request_param_t Port::parameters_of(UcxMessage& message) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.cb.send = &Port::complete;
  parameters.user_data = &message;
  return parameters;
}

// Eager: what has left arrives although this side does nothing more, as bytes that a system has taken do.
void Port::send(Kind kind, UcxMessage& message) {
  ucp_request_param_t parameters = parameters_of(message);
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  follow(ucp_am_send_nbx(endpoint_, static_cast<unsigned>(kind), &message.number, sizeof message.number,
                         message.bytes.data(), message.bytes.size(), &parameters),
         message);
}

void Port::flush(UcxMessage& flush) {
  const ucp_request_param_t parameters = parameters_of(flush);
  follow(ucp_ep_flush_nbx(endpoint_, &parameters), flush);
}

void Port::follow(ucs_status_ptr_t request, UcxMessage& message) {
  message.is_under_way = UCS_PTR_IS_PTR(request);
  if (UCS_PTR_IS_ERR(request)) fail_with(UCS_PTR_STATUS(request));
}

// Why it failed comes to break_off.
void Port::complete(void* request, ucs_status_t, void* message) {
  static_cast<UcxMessage*>(message)->is_under_way = false;
  ucp_request_free(request);
}

std::uint64_t number_in(const void* header) {
  std::uint64_t number = 0;
  std::memcpy(&number, header, sizeof number);
  return number;
}

ucs_status_t Port::take_data(void* port, const void* header, std::size_t header_size, void* data,
                             std::size_t size, const ucp_am_recv_param_t* parameters) {
  static_cast<Port*>(port)->has_heard_ = true;
  if (header_size != sizeof(std::uint64_t)) return UCS_OK;  // of no Muster
  const bool may_stay = (parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  const bool stays = static_cast<Port*>(port)->receiver_.take_data(
      number_in(header), {static_cast<const std::byte*>(data), size}, may_stay);
  return stays ? UCS_INPROGRESS : UCS_OK;
}

ucs_status_t Port::take_credit(void* port, const void* header, std::size_t header_size, void*, std::size_t,
                               const ucp_am_recv_param_t*) {
  static_cast<Port*>(port)->has_heard_ = true;
  if (header_size == sizeof(std::uint64_t))
    static_cast<Port*>(port)->receiver_.take_credit(number_in(header));
  return UCS_OK;
}

Result<std::unique_ptr<UcxPort>> open_port(UcxReceiver& receiver) {
  MUSTER_TRY(auto context, Context::shared());
  auto port = std::make_unique<Port>(std::move(context), receiver);
  MUSTER_TRY_VOID(port->open());
  return port;
}

Result<std::vector<std::string>> devices() {
  MUSTER_TRY(const auto context, Context::shared());
  return context->devices();
}

}  // namespace
}  // namespace muster::ucx

extern "C" __attribute__((visibility("default"))) const muster::collective::UcxLibrary* muster_ucx_library() {
  static const muster::collective::UcxLibrary library{.version = muster::collective::ucx_port_version,
                                                      .name = muster::ucx::version_name(),
                                                      .open = &muster::ucx::open_port,
                                                      .devices = &muster::ucx::devices};
  return &library;
}
