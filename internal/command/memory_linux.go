package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is the machine's memory in bytes that this process may have, or 0 if it is unknown.
func machineMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return groupMemory()
	}
	all := int64(s.Totalram) * int64(s.Unit)
	if limit := groupMemory(); limit > 0 {
		return min(all, limit)
	}
	return all
}

// groupMemory is the memory in bytes that the control group of this process may have, or 0 if none
// has a limit.
func groupMemory() int64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	return groupLimit("/sys/fs/cgroup", string(text))
}

// groupLimit is the least limit of the control groups that a text of /proc names and of those that
// they are in, 0 if none has one. A container may see them from the root on only.
func groupLimit(root, groups string) (least int64) {
	for line := range strings.Lines(groups) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(line, ":")
		base, file := filepath.Join(root, "memory"), "memory.limit_in_bytes"
		switch {
		case controllers == "":
			base, file = root, "memory.max"
		case !slices.Contains(strings.Split(controllers, ","), "memory"):
			continue
		}
		for dir := filepath.Join("/", group); ; dir = filepath.Dir(dir) {
			text, err := os.ReadFile(filepath.Join(base, dir, file))
			limit, failed := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && failed == nil && limit < unlimited && (least == 0 || limit < least) {
				least = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// unlimited is more than any machine has: without a limit a group of version 1 says more yet.
const unlimited = 1 << 60

// resident is the memory in bytes that this process has and the most that it has had, or 0 and 0 if
// they are unknown.
func resident() (now, peak int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	of := func(name string) (kib int64) {
		if _, rest, ok := strings.Cut(string(text), name+":"); ok {
			fmt.Sscan(rest, &kib)
		}
		return kib << 10
	}
	return of("VmRSS"), of("VmHWM")
}
