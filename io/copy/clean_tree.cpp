#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/throw_error.hpp"
#include "io/copy/copy_target.hpp"
#include "io/copy/verify_tree.hpp"
#include "io/tree/folder_files.hpp"

namespace muster {

namespace {

bool is_as_copied(listed_file const& file, struct stat const& found) {
    if (file.what == listed_file::kind::link) return S_ISLNK(found.st_mode);
    return is_unchanged(file, found);
}

/// Removes the entries of one manifest, those deepest in the tree first.
class cleaner {
  public:
    cleaner(int root, std::string const& path, bool changed_too, bool dry_run, tree_cleaning& report)
        : folders_(root, folder_cache::links::refused),
          path_(path),
          changed_too_(changed_too),
          dry_run_(dry_run),
          report_(report) {}

    void clean(manifest const& listed) {
        if (!dry_run_)
            for (manifest_entry const& entry : listed.entries)
                if (entry.file.is_folder()) open_for_writing(entry.file);
        for (auto entry = listed.entries.rbegin(); entry != listed.entries.rend(); ++entry) remove(entry->file);
    }

  private:
    void open_for_writing(listed_file const& folder) {
        int const parent = folders_.parent(folder.path);
        if (parent >= 0 && (folder.mode & 0300) != 0300)
            static_cast<void>(::fchmodat(parent, std::string(name_of(folder.path)).c_str(), folder.mode | 0700, 0));
    }

    void remove(listed_file const& file) {
        std::string const name(name_of(file.path));
        int const folder = folders_.parent(file.path);
        auto const found = folders_.find(file.path);
        if (!found) return;
        if (file.is_folder()) {
            if (!dry_run_ && S_ISDIR(found->st_mode) && ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 &&
                errno != ENOTEMPTY && errno != EEXIST)
                throw_system("rmdir", path_ + "/" + file.path);
            return;
        }
        if (S_ISDIR(found->st_mode) || (!changed_too_ && !is_as_copied(file, *found))) {
            report_.kept.push_back(path_ + "/" + file.path);
            return;
        }
        if (!dry_run_ && ::unlinkat(folder, name.c_str(), 0) != 0) throw_system("unlink", path_ + "/" + file.path);
        ++report_.removed;
        report_.bytes += file.size;
    }

    folder_cache folders_;
    std::string const& path_;
    bool changed_too_, dry_run_;
    tree_cleaning& report_;
};

}  // namespace

tree_cleaning clean_tree(std::string const& path, bool changed_too, bool dry_run) {
    unique_fd const root = open_own_folder(path, false);
    if (!root) throw_error(errc::not_found, "there is no folder {}; check its name", path);
    tree_cleaning report;
    auto names = names_in_folder(root.get());
    std::erase_if(names, [](std::string const& name) { return !name.starts_with(state_folder_name); });
    if (names.empty()) throw_error(errc::not_found, "{} holds no copy of muster stage; check its name", path);
    std::ranges::sort(names);
    for (std::string const& name : names) {
        copy_target const held(path, name, dry_run);  // has the lock
        cleaner(root.get(), path, changed_too, dry_run, report).clean(read_manifest(held.state(), path));
        if (dry_run) continue;
        if (unique_fd const unpacked = open_folder_inside(held.state(), unpacked_folder_name))
            for (std::string const& folder : names_in_folder(unpacked.get())) remove_tree(root.get(), folder);
        remove_tree(root.get(), name);
    }
    return report;
}

}  // namespace muster
