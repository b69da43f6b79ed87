package train

import "github.com/gomem/gomem/internal/regular"

// What saving needs of a file system, and the operating system's.
type (
	disk   = regular.Disk
	file   = regular.File
	osDisk = regular.OS
)
