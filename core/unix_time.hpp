// Seconds since 1970, for files that other programs read; never used to order anything of ours.
#pragma once

namespace temper {

double unix_time();

}  // namespace temper
