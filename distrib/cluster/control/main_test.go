package control

import (
	"os"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.RunWaiting(m)) }
