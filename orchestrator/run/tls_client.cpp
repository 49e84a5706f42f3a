#include "orchestrator/run/tls_client.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace temper::orchestrator {
namespace {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* text) const { BIO_free(text); }
};
using Certificate = std::unique_ptr<X509, FreeCertificate>;
using Text = std::unique_ptr<BIO, FreeCertificate>;

Text open_text(std::string_view text) {
  return Text(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Null: there is no other, or it is damaged.
Certificate next_certificate(BIO* pem) {
  ERR_clear_error();
  return Certificate(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
}

std::string last_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "no reason" : reason;
}

/// The certificate must be for the host. False: there is no memory.
bool expect_host(SSL* session, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1)
    return true;  // an IP address, which SNI cannot name
  SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(session, host.c_str()) == 1 &&
         SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

}  // namespace

Result<std::string> certificates_in(std::string_view pem) {
  const Text from = open_text(pem), to(BIO_new(BIO_s_mem()));
  if (!from || !to)
    return Error{ErrorCode::Internal, "OpenSSL: " + last_reason()};
  while (const Certificate certificate = next_certificate(from.get()))
    PEM_write_bio_X509(to.get(), certificate.get());
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return invalid_input("expected certificates in PEM, found a damaged one: " + last_reason());
  char* text = nullptr;
  const auto size = BIO_get_mem_data(to.get(), &text);
  if (size <= 0)
    return invalid_input("expected certificates in PEM, found none");
  return std::string(text, static_cast<std::size_t>(size));
}

void TlsClient::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

void TlsClient::Free::operator()(ssl_st* session) const {
  SSL_free(session);
}

TlsClient::TlsClient(std::string host, std::string ca_certificates)
    : host_(std::move(host)), ca_certificates_(std::move(ca_certificates)) {}

TlsClient::~TlsClient() = default;

Status TlsClient::prepare() {
  std::unique_ptr<ssl_ctx_st, Free> context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_default_verify_paths(context.get()) != 1)
    return Error{ErrorCode::Internal, "OpenSSL: " + last_reason()};
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const Text pem = open_text(ca_certificates_);
  while (const Certificate certificate = next_certificate(pem.get()))
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), certificate.get());
  context_ = std::move(context);
  return {};
}

Status TlsClient::open(int socket) {
  if (!context_)
    TEMPER_TRY_STATUS(prepare());
  session_.reset(SSL_new(context_.get()));
  if (!session_ || !expect_host(session_.get(), host_) || SSL_set_fd(session_.get(), socket) != 1)
    return Error{ErrorCode::Internal, "OpenSSL: " + last_reason()};
  ERR_clear_error();
  const int result = SSL_connect(session_.get());
  if (result == 1)
    return {};
  const long verified = SSL_get_verify_result(session_.get());
  if (verified != X509_V_OK) {
    return invalid_input(fmt::format("expected a valid certificate for {}, found: {}",
                                     host_,
                                     X509_verify_cert_error_string(verified)));
  }
  return failure(result).within("expected a server with TLS, found");
}

Status TlsClient::write(std::string_view bytes) {
  std::size_t written = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written);
  return result == 1 ? Status() : failure(result);
}

Result<std::string_view> TlsClient::read() {
  std::size_t size = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(session_.get(), received_.data(), received_.size(), &size);
  if (result != 1)
    return failure(result);
  return std::string_view(received_.data(), size);
}

/// Of the last call, whose errno it keeps.
Error TlsClient::failure(int result) const {
  const int system = errno;
  const auto unavailable = [system](std::string why) {
    errno = system;
    return Error{ErrorCode::Unavailable, std::move(why)};
  };
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:  // the time limit of the socket
      return unavailable("no answer");
    case SSL_ERROR_ZERO_RETURN:
      return unavailable("the server closed the connection");
    case SSL_ERROR_SYSCALL:
      return unavailable(system == 0 ? "the server closed the connection" : std::strerror(system));
    default:
      return unavailable(last_reason());
  }
}

}  // namespace temper::orchestrator
