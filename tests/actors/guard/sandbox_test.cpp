// The restrictions of sandboxes on guarded processes.
#include "actors/guard/sandbox.hpp"

#include "tests/actors/guard/guarded.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace temper::actors {
namespace {

/// Returns what `script` prints in this sandbox.
std::string said(const std::string& script, const Sandbox& sandbox) {
  auto process = GuardedProcess::start({"sh", "-c", script}, sandbox);
  if (!process)
    return "not started: " + process.error().context;
  return read_until(process->output());
}

Sandbox of_kind(SandboxKind kind) {
  Sandbox sandbox;
  sandbox.kind = kind;
  return sandbox;
}

TEST(Sandbox, PassesOnlySelectedEnvironmentVariables) {
  ::setenv("TEMPER_TEST_TOKEN", "s3cret", 1);
  EXPECT_EQ(said("echo \"$TEMPER_TEST_TOKEN\"; env | grep -c s3cret", {}), "\n0\n");
  Sandbox passed;
  passed.environment = {"TEMPER_TEST_TOKEN"};
  EXPECT_EQ(said("echo \"$TEMPER_TEST_TOKEN\"", passed), "s3cret\n");
  EXPECT_EQ(said("test -n \"$PATH\" && echo path", {}), "path\n");
  ::unsetenv("TEMPER_TEST_TOKEN");
}

TEST(Sandbox, LimitsHold) {
  Sandbox limits = of_kind(SandboxKind::Limits);
  limits.memory = Bytes(Bytes::rep{64} << 20);
  EXPECT_EQ(said("ulimit -d; ulimit -c; grep NoNewPrivs /proc/self/status", limits),
            "65536\n0\nNoNewPrivs:\t1\n");
  // Doubles its memory until that fails.
  const std::string eater = "x=aaaaaaaa; while x=$x$x$x$x; do :; done; echo survived";
  auto process = GuardedProcess::start({"sh", "-c", eater}, limits).value();
  EXPECT_EQ(read_until(process.output()), "");
}

class InNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    if (const Status can = check_sandbox(SandboxKind::Namespaces); !can)
      GTEST_SKIP() << can.error().context;
    ASSERT_EQ(::chdir("/"), 0);
  }
  Sandbox sandbox_ = of_kind(SandboxKind::Namespaces);
};

TEST_F(InNamespaces, HasNoNetwork) {
  // The only interface is the loopback, and it is down.
  EXPECT_EQ(said("ls /sys/class/net >/dev/null; tail -n +3 /proc/net/dev | wc -l", sandbox_),
            "1\n");
}

TEST_F(InNamespaces, HidesOtherProcesses) {
  EXPECT_EQ(said("echo $$; ls /proc | grep -c '^[0-9]'", sandbox_).substr(0, 2), "1\n");
  EXPECT_EQ(said(fmt::format("test -e /proc/{} && echo seen; echo done", ::getpid()), sandbox_),
            "done\n");
}

TEST_F(InNamespaces, MakesEverythingButItsPrivateFolderReadOnly) {
  const std::string file = "/tmp/temper-guard-test-file";
  std::ofstream(file) << "ours";
  EXPECT_EQ(
      said("cat " + file + " 2>/dev/null; echo theirs > " + file + " && cat " + file, sandbox_),
      "theirs\n");
  std::ifstream ours(file);
  std::string text;
  ours >> text;
  EXPECT_EQ(text, "ours");
  std::filesystem::remove(file);
  EXPECT_EQ(said("(echo x > /var/tmp/temper-guard-test) 2>/dev/null || echo refused", sandbox_),
            "refused\n");
}

TEST_F(InNamespaces, CannotBeUndone) {
  EXPECT_EQ(said("umount /tmp 2>/dev/null || echo refused", sandbox_), "refused\n");
  EXPECT_EQ(said("grep -c 'CapEff:.0000000000000000' /proc/self/status", sandbox_), "1\n");
  EXPECT_EQ(said("unshare -Ur umount /tmp 2>/dev/null || echo refused", sandbox_), "refused\n");
}

TEST_F(InNamespaces, RefusesSystemCallsThatNoVerifierNeeds) {
  EXPECT_EQ(said("grep '^Seccomp:' /proc/self/status", sandbox_), "Seccomp:\t2\n");
  EXPECT_EQ(said("unshare -Ur true 2>/dev/null || echo refused", sandbox_), "refused\n");
  const std::string calls =
      "import ctypes, errno, socket, sys\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "for name in ['mount', 'setns', 'chroot', 'acct']:\n"
      "    assert getattr(libc, name)(None, None, None, 0, None) < 0\n"
      "    print(name, errno.errorcode[ctypes.get_errno()])\n"
      "for family in (socket.AF_VSOCK, socket.AF_PACKET):\n"
      "    try:\n"
      "        socket.socket(family, socket.SOCK_STREAM)\n"
      "    except OSError as error:\n"
      "        print(family.name, errno.errorcode[error.errno])\n";
  EXPECT_EQ(said("python3 - <<'END' 2>&1\n" + calls + "END", sandbox_),
            "mount EPERM\nsetns EPERM\nchroot EPERM\nacct EPERM\n"
            "AF_VSOCK EAFNOSUPPORT\nAF_PACKET EAFNOSUPPORT\n");
}

/// Returns what a Python program prints in this sandbox.
std::string python(const std::string& program, const Sandbox& sandbox) {
  return said("python3 - <<'END' 2>&1\n" + program + "END", sandbox);
}

/// Each probe is a line of Python that tries to escape from the sandbox; it prints the error that
/// stopped it.
struct Probe {
  const char* name;
  std::string program;  ///< {0}: a folder outside that this user may write to; {1}: our pid.
  const char* expected;
};

class Probes : public InNamespaces, public testing::WithParamInterface<Probe> {};

std::string name_of_probe(const testing::TestParamInfo<Probe>& info) {
  return info.param.name;
}

constexpr const char* kConnect =
    "s = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)[0]\ns.connect('{0}/socket')\n";

INSTANTIATE_TEST_SUITE_P(
    OutOfTheSandbox,
    Probes,
    testing::Values(
        Probe{
            "ConnectByPath", "socket.socket(socket.AF_UNIX).connect('{0}/socket')", "EAFNOSUPPORT"},
        Probe{"ConnectByAbstractName",
              "socket.socket(socket.AF_UNIX).connect('\\0x')",
              "EAFNOSUPPORT"},
        Probe{"DatagramToPath",
              "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '{0}/socket')",
              "EAFNOSUPPORT"},
        Probe{"SequencedToPath",
              "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('{0}/socket')",
              "EAFNOSUPPORT"},
        Probe{"SocketOfAnotherFamily", "socket.socket(socket.AF_VSOCK)", "EAFNOSUPPORT"},
        Probe{"PairOfDatagrams", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)", "EPERM"},
        Probe{"PairWithFlags",
              "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)",
              "EPERM"},
        Probe{"PairOfAnotherFamily", "socket.socketpair(socket.AF_INET)", "EAFNOSUPPORT"},
        Probe{"PairReconnected", kConnect, "EISCONN"},
        Probe{
            "ListenAtAPath", "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s')", "EAFNOSUPPORT"},
        Probe{"FileOutside", "open('{0}/new', 'w')", "EROFS"},
        Probe{"FifoForWriting", "os.open('{0}/fifo', os.O_WRONLY | os.O_NONBLOCK)", "EACCES"},
        Probe{"FifoForBoth", "os.open('{0}/fifo', os.O_RDWR | os.O_NONBLOCK)", "EACCES"},
        Probe{"FifoThroughALink",
              "os.symlink('{0}/fifo', '/tmp/l'); os.open('/tmp/l', os.O_WRONLY | os.O_NONBLOCK)",
              "EACCES"},
        Probe{"SharedMemoryOfTheMachine", "open('/dev/shm/x', 'w')", "ENOENT"},
        Probe{"Terminal", "os.open('/dev/tty', os.O_RDWR)", "ENOENT"},
        Probe{"TerminalOfItsOwn", "os.open('/dev/ptmx', os.O_RDWR)", "ENOENT"},
        Probe{"DeviceElsewhere",
              "os.mknod('/tmp/d', 0o600 | stat.S_IFCHR, os.makedev(1, 3))",
              "EPERM"},
        Probe{"DeviceFolder", "open('/dev/x', 'w')", "EROFS"},
        Probe{"DeviceMode", "os.chmod('/dev/null', 0o600)", "EROFS"},
        Probe{"MemoryWithoutAMapping", "os.memfd_create('x')", "ENOSYS"},
        Probe{"SharedSegment", "call('shmget', 0, 1 << 30, 0o1600)", "ENOSYS"},
        Probe{"Namespace", "call('unshare', 0x10000000)", "EPERM"},
        Probe{"RingOfCalls", "call('syscall', 425, 8, 0)", "EPERM"},
        Probe{"ProcessOutside", "os.kill({1}, 0)", "ESRCH"}),
    name_of_probe);

TEST_P(Probes, AreStopped) {
  char base[] = "/var/tmp/temper-probe-XXXXXX";
  ASSERT_NE(::mkdtemp(base), nullptr);
  const std::string folder = base;
  ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0666), 0);
  const FileDescriptor reader(::open((folder + "/fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const FileDescriptor server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", base);
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(server.get(), 5), 0);

  std::string probe = GetParam().program;
  for (std::size_t at = 0; (at = probe.find("{0}")) != std::string::npos;)
    probe.replace(at, 3, folder);
  if (const std::size_t at = probe.find("{1}"); at != std::string::npos)
    probe.replace(at, 3, std::to_string(::getpid()));
  for (std::size_t at = 0; (at = probe.find('\n', at)) != std::string::npos; at += 5)
    probe.replace(at, 1, "\n    ");
  const std::string said = python(
      "import ctypes, errno, os, socket, stat\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "def call(name, *words):\n"
      "    if getattr(libc, name)(*words) < 0:\n"
      "        raise OSError(ctypes.get_errno(), name)\n"
      "try:\n    " +
          probe + "\n    print('DONE')\nexcept OSError as error:\n" +
          "    print(errno.errorcode[error.errno])\n",
      sandbox_);
  EXPECT_FALSE(said.empty());
  EXPECT_EQ(said, GetParam().expected + std::string("\n")) << GetParam().name;
  std::array<char, 1> byte{};
  EXPECT_LT(::read(reader.get(), byte.data(), 1), 0) << "data arrived through the FIFO";
  std::filesystem::remove_all(folder);
}

TEST_F(InNamespaces, ProvidesFiveDevices) {
  EXPECT_EQ(python("import os, stat\n"
                   "print(sorted(n for n in os.listdir('/dev') "
                   "if stat.S_ISCHR(os.stat('/dev/' + n).st_mode)))\n"
                   "print(len(open('/dev/urandom', 'rb').read(3)), "
                   "open('/dev/zero', 'rb').read(2), open('/dev/null').read() == '')\n"
                   "open('/dev/null', 'w').write('x')\n"
                   "print(os.path.exists('/dev/fd/1'))\n",
                   sandbox_),
            "['full', 'null', 'random', 'urandom', 'zero']\n3 b'\\x00\\x00' True\nTrue\n");
  EXPECT_EQ(said("echo out > /dev/stdout; echo err > /dev/stderr", sandbox_), "out\n");
}

class Bounds : public InNamespaces, public testing::WithParamInterface<SandboxKind> {
 protected:
  void SetUp() override {
    if (GetParam() == SandboxKind::Namespaces)
      InNamespaces::SetUp();
    sandbox_ = of_kind(GetParam());
    sandbox_.memory = Bytes(Bytes::rep{96} << 20);
  }
  /// Returns how a program ends in the sandbox.
  std::string ended(const std::string& program) const {
    auto process = GuardedProcess::start({"python3", "-c", program}, sandbox_);
    if (!process)
      return process.error().context;
    EXPECT_TRUE(wait_until_gone(*process));
    return process->how_it_ended().value_or("nobody knows");
  }
};
INSTANTIATE_TEST_SUITE_P(OfBothKinds,
                         Bounds,
                         testing::Values(SandboxKind::Limits, SandboxKind::Namespaces),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

constexpr std::string_view kTouch =
    "import mmap, os, time\n"
    "def hold(m, n):\n"
    "    for i in range(0, n << 20, 4096): m[i] = 1\n"
    "    return m\n";

TEST_P(Bounds, CountsAllKindsOfMemory) {
  const std::string touch(kTouch);
  for (const std::string take : {
           // shared memory, which RLIMIT_DATA does not limit
           "m = hold(mmap.mmap(-1, 300 << 20), 300)",
           "m = [hold(mmap.mmap(-1, 30 << 20), 30) for _ in range(10)]",
           "f = open('/tmp/x', 'wb+'); f.truncate(300 << 20); m = hold(mmap.mmap(f.fileno(), 0), "
           "300)",
           "for _ in range(6):\n"  // each process is below its own limit
           "    if os.fork() == 0: m = hold(mmap.mmap(-1, 60 << 20, mmap.MAP_PRIVATE), 60); break",
       }) {
    if (GetParam() == SandboxKind::Limits && take.starts_with("f = "))
      continue;  // a file on a real disk does not use memory
    EXPECT_EQ(ended(touch + take + "\ntime.sleep(1000)\n"),
              "killed: it used more than 96MiB (verifier.memory)")
        << take;
  }
}

TEST_P(Bounds, CountsSharedMemoryOnce) {
  EXPECT_EQ(
      ended(std::string(kTouch) + "m = hold(mmap.mmap(-1, 60 << 20), 60)\n"
                                  "pids = []\n"
                                  "for _ in range(4):\n"
                                  "    pid = os.fork()\n"
                                  "    if pid == 0: hold(m, 60); time.sleep(0.5); os._exit(0)\n"
                                  "    pids.append(pid)\n"
                                  "for pid in pids: os.waitpid(pid, 0)\n"),
      "exit code 0");
}

TEST_P(Bounds, CountsProcesses) {
  sandbox_.memory = Bytes(Bytes::rep{16} << 30);
  EXPECT_EQ(ended("import os, time\n"
                  "while True:\n"
                  "    try:\n"
                  "        if os.fork() == 0: time.sleep(1000)\n"
                  "    except OSError: time.sleep(1000)\n"),
            "killed: it had more than 512 processes");
}

/// Whether the kernel counts the processes of a user by namespace (Linux 5.14).
bool counts_processes_by_namespace() {
  utsname system{};
  int major = 0, minor = 0;
  return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 14));
}

TEST_P(Bounds, AreTheKernelLimitsOfThePageOnSecurity) {
  rlimit processes{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &processes), 0);
  if (GetParam() == SandboxKind::Namespaces && counts_processes_by_namespace())
    processes.rlim_max = std::min<rlim_t>(processes.rlim_max, 4096);
  EXPECT_EQ(
      python("import resource as r\n"
             "for name in ['DATA', 'FSIZE', 'NOFILE', 'CORE']:\n"
             "    soft, hard = r.getrlimit(getattr(r, 'RLIMIT_' + name))\n"
             "    assert soft == hard\n"
             "    print(name, soft)\n"
             "print(r.getrlimit(r.RLIMIT_NPROC)[1] % 2**64)\n",
             sandbox_),
      fmt::format(
          "DATA {}\nFSIZE {}\nNOFILE 1024\nCORE 0\n{}\n", 96 << 20, 1 << 30, processes.rlim_max));
}

TEST_P(Bounds, StopWhatExceedsThem) {
  EXPECT_EQ(python("import errno, os, tempfile\n"
                   "def attempt(call):\n"
                   "    try:\n"
                   "        call()\n"
                   "        print('DONE')\n"
                   "    except (OSError, MemoryError) as e:\n"
                   "        print(errno.errorcode[e.errno] if e.args else 'MemoryError')\n"
                   "f, name = tempfile.mkstemp()\n"
                   "attempt(lambda: os.pwrite(f, b'x', (1 << 30) - 1))\n"
                   "attempt(lambda: os.pwrite(f, b'x', 1 << 30))\n"
                   "attempt(lambda: bytearray(97 << 20))\n"
                   "attempt(lambda: [os.dup(f) for _ in range(1024)])\n"
                   "os.unlink(name)\n",
                   sandbox_),
            "DONE\nEFBIG\nMemoryError\nEMFILE\n");
}

TEST_F(InNamespaces, ItsPrivateFolderHoldsOneGibibyte) {
  EXPECT_EQ(python("import os\ns = os.statvfs('/tmp')\nprint(s.f_blocks * s.f_frsize)\n", sandbox_),
            fmt::format("{}\n", 1 << 30));
}

TEST_F(InNamespaces, RunsOrdinaryPrograms) {
  const std::string ordinary =
      "import socket, subprocess, threading\n"
      "thread = threading.Thread(target=lambda: print('thread', flush=True))\n"
      "thread.start(); thread.join()\n"
      "print(subprocess.run(['echo', 'process'], capture_output=True, text=True).stdout, end='')\n"
      "a, b = socket.socketpair(); a.send(b'socket'); print(b.recv(6).decode())\n";
  EXPECT_EQ(said("python3 - <<'END' 2>&1\n" + ordinary + "END", sandbox_),
            "thread\nprocess\nsocket\n");
}

TEST_F(InNamespaces, HiddenFoldersLookEmpty) {
  sandbox_.hidden = {"/etc"};
  EXPECT_EQ(said("ls /etc | wc -l", sandbox_), "0\n");
  sandbox_.hidden = {"/no/such/folder"};
  EXPECT_NE(said("true", sandbox_)
                .find("cannot hide a folder; check that the folders in verifier.hidden exist"),
            std::string::npos);
}

TEST_F(InNamespaces, NamesACommandInAHiddenFolder) {
  const std::string script = "/tmp/temper-guard-test.sh";
  std::ofstream(script) << "echo here";
  const auto process = GuardedProcess::start({"sh", script}, sandbox_);
  ASSERT_FALSE(process);
  EXPECT_NE(process.error().context.find(script + " is below /tmp"), std::string::npos)
      << process.error().context;
  std::filesystem::remove(script);
}

TEST_F(InNamespaces, KillsItsChildrenWhenItEnds) {
  auto process =
      GuardedProcess::start({"sh", "-c", "setsid sleep 1000 & echo started; sleep 1000"}, sandbox_);
  ASSERT_TRUE(process);
  EXPECT_EQ(read_until(process->output(), "started\n"), "started\n");
  process->kill();
  EXPECT_TRUE(is_end_of_file(process->output()));
}

}  // namespace
}  // namespace temper::actors
