// The only header that includes Boost.Asio, and only the parts in use, because it is slow to
// compile.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <utility>  // Boost 1.74 forgets it under gcc 12.
