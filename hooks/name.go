package hooks

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// defaultOrder is where a hook runs that declares nothing.
const defaultOrder = 50

// maxOrder bounds an order to what fits an int on every platform.
const maxOrder = 1<<31 - 1

// passedOver reports the names that editors, package managers and Kubernetes
// leave in a directory (..data, .swp, ~, .dpkg-dist) and that nobody needs to
// hear of.
func passedOver(file string) bool {
	for _, end := range []string{"~", ".bak", ".md"} {
		if strings.HasSuffix(file, end) {
			return true
		}
	}
	last := strings.LastIndexByte(file, '.')
	return last == 0 || strings.HasPrefix(file, ".") || last > 0 && strings.HasPrefix(file[last:], ".dpkg-")
}

func beginsWithNumber(file string) bool { return file != "" && digit(file[0]) }

// splitName takes 10-hand-over.sh apart into 10 and "hand-over". Without a
// number it is the default order. A name that would come out empty (10.sh)
// stays what is left without the extension. The error is a number that is out
// of range; the name holds in that case too.
func splitName(file string) (order int, name string, err error) {
	stem := strings.TrimSuffix(file, extension(file))
	digits := len(stem) - len(strings.TrimLeft(stem, "0123456789"))
	name = strings.TrimLeft(stem[digits:], "-_. ")
	if digits == 0 {
		name = stem // a separator separates something
	}
	if name == "" {
		name = stem
	}
	if digits == 0 {
		return defaultOrder, name, nil
	}
	order, err = parseOrder(stem[:digits])
	return order, name, err
}

// extension is the last dot and what follows, where that is a word: letters and
// digits after a letter. So hand-over.v2.sh is "hand-over.v2", and 10.5-a and
// 10.5-b are not two hooks of one name.
func extension(file string) string {
	dot := strings.LastIndexByte(file, '.')
	if dot <= 0 || dot == len(file)-1 || digit(file[dot+1]) {
		return ""
	}
	for i := dot + 1; i < len(file); i++ {
		if c := file[i] | 0x20; !digit(file[i]) && (c < 'a' || c > 'z') {
			return ""
		}
	}
	return file[dot:]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// parseOrder reads a whole number from 0 to maxOrder, no sign.
func parseOrder(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("order %q is not a whole number from 0 to %d", s, maxOrder)
	}
	return int(n), nil
}

// sortHooks puts hooks in running order. Paths differ in the file's name only.
func sortHooks(hooks []Hook) {
	sort.SliceStable(hooks, func(i, j int) bool {
		a, b := hooks[i], hooks[j]
		return a.Order < b.Order || a.Order == b.Order && a.Path < b.Path
	})
}
