// `temper-worker verify`: judges responses with the verifiers of this program, for a reward actor
// in Python that sums their rewards and others (python/src/temper/native.py). On stdin and stdout
// are frames, each a length (4 bytes, little-endian) and as many bytes of msgpack: first a
// VerifierConfig, then a batch of requests at a time. A batch is answered by a frame with a
// reward.judged. It ends with stdin.
#pragma once

namespace temper::orchestrator {

/// Returns the exit code: 0 at the end of stdin, 1 after an error, whose reason is on stderr.
int run_verify();

}  // namespace temper::orchestrator
