// TLS of a client, over a socket that is connected. The server's certificate and the host that it
// is for are always verified.
#pragma once

#include "core/result.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace temper::orchestrator {

/// The certificates in a text in PEM, without the text's other content, such as keys. Error:
/// InvalidInput, there is none, or one is damaged.
Result<std::string> certificates_in(std::string_view pem);

/// Requires: SIGPIPE is ignored.
class TlsClient {
 public:
  /// `host`: a name or an IP address. `ca_certificates`: trusted besides those of the system, as
  /// returned by certificates_in().
  TlsClient(std::string host, std::string ca_certificates);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// Starts a session, in place of the previous one. The socket must be blocking; its time limits
  /// apply to every read and write. It is used until the next open(), and stays the caller's.
  /// Errors: InvalidInput, the certificate is not valid or not for the host; Unavailable, anything
  /// else.
  Status open(int socket);
  /// Requires: a session. Error: Unavailable.
  Status write(std::string_view bytes);
  /// At least one byte, valid until the next call. Requires: a session. Error: Unavailable.
  Result<std::string_view> read();

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* session) const;
  };

  Status prepare();
  Error failure(int result) const;

  const std::string host_;
  const std::string ca_certificates_;
  std::unique_ptr<ssl_ctx_st, Free> context_;  ///< Null: open() was not called.
  std::unique_ptr<ssl_st, Free> session_;
  std::array<char, 16384> received_{};  ///< A TLS record has at most as many bytes.
};

}  // namespace temper::orchestrator
