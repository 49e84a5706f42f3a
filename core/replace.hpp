// Atomic replacement: whenever the process ends, either the old or the new file (or folder) is
// complete under its name.
#pragma once

#include "core/files.hpp"

namespace temper {

/// Syncs `file`, whose current path is `from`, and renames it to `to`. Returns the file opened for
/// appending at its new path. `file` is closed in any case. Errors: Io; those of AppendFile::open()
/// if the renamed file cannot be opened again.
Result<AppendFile> put_in_place(AppendFile file,
                                const std::filesystem::path& from,
                                const std::filesystem::path& to);

/// Exchanges two names in one folder atomically and syncs the folder. Returns false, with nothing
/// changed, if the file system does not support this. Error Io: any other failure, such as a
/// missing name.
Result<bool> exchange_durably(const std::filesystem::path& a, const std::filesystem::path& b);

/// Renames the folder `partial` to `folder` and removes the previous folder of that name. Atomic if
/// the file system can exchange two names; otherwise the previous folder is first renamed to
/// `folder`.replaced. Error Io: a rename or a removal failed; if the removal of the previous folder
/// failed, the new one is already in place.
Status put_folder_in_place(const std::filesystem::path& partial,
                           const std::filesystem::path& folder);

}  // namespace temper
