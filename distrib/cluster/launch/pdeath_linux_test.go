package launch_test

// diesWithParent reports whether the kernel ends processes with their parent.
const diesWithParent = true
