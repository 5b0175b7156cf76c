//! A disk that a test can fill.

#![expect(
    clippy::expect_used,
    reason = "a test helper fails by panicking, with what a person needs to see why"
)]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of a few megabytes in memory, or a mount on one of its files; it is gone when this is.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl SmallDisk {
    /// Fails where mounting is not allowed. `None` if that was expected (`MEMTROVE_ALLOW_SKIPS=1`): the test then says
    /// that it was left out.
    #[track_caller]
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).expect("a mount point");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .output()
            .expect("the program mount");
        if mounted.status.success() {
            return Some(Self { path, _folder: Some(folder) });
        }
        let why = String::from_utf8_lossy(&mounted.stderr).trim().to_owned();
        assert!(
            std::env::var("MEMTROVE_ALLOW_SKIPS").is_ok_and(|allowed| allowed == "1"),
            "this test needs a small disk, which only root may mount ({why}): run it as root, or set \
             MEMTROVE_ALLOW_SKIPS=1 to leave it out"
        );
        eprintln!("skipped, because a small disk cannot be mounted here: {why}");
        None
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes it while it is in use: `ro`, `rw`, `size=64m`.
    pub fn remount(&self, options: &str) {
        mount(&["-o", &format!("remount,{options}")], &self.path);
    }

    /// Makes one file of it read-only, for root too, until the answer is dropped.
    pub fn protect(&self, file: &str) -> Self {
        let path = self.path.join(file);
        mount(&["--bind", path.to_str().expect("a path in UTF-8")], &path);
        let protected = Self { path, _folder: None };
        protected.remount("bind,ro");
        protected
    }

    /// Writes until there is no room for a single byte more.
    pub fn fill(&self) {
        let ballast = OpenOptions::new().create(true).append(true).open(self.ballast());
        let mut ballast = ballast.expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            while ballast.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    /// Gives back what [`SmallDisk::fill`] took.
    pub fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("the ballast");
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

#[track_caller]
fn mount(args: &[&str], path: &Path) {
    let mounted = Command::new("mount").args(args).arg(path).status().expect("the program mount");
    assert!(mounted.success(), "mount {args:?} {}", path.display());
}
