// Puts what was written under another name in the place of what it replaces: whenever the process
// ends, the one or the other is there as a whole.
#pragma once

#include "core/files.hpp"

namespace temper {

/// Syncs `file`, which is written at `from`, and gives it the name `to`. The result goes on with
/// it.
Result<AppendFile> put_in_place(AppendFile file,
                                const std::filesystem::path& from,
                                const std::filesystem::path& to);

/// Exchanges two names of one folder at once and syncs it. False: the file system cannot, and
/// nothing was changed.
Result<bool> exchange_durably(const std::filesystem::path& a, const std::filesystem::path& b);

/// `partial` takes the name `folder`, and a folder of that name is removed: at once where the file
/// system can exchange two names, else by way of `folder`.replaced.
Status put_folder_in_place(const std::filesystem::path& partial,
                           const std::filesystem::path& folder);

}  // namespace temper
