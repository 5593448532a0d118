// Package pages checks the documentation against the tree. Links, commands, paths and numbers must be right. The
// README's commands must end with a verified webhook. The samples for merchants must accept valid notifications and
// refuse forged ones. The sample shops must survive every test number without a second effect, and the curl command of
// each operation must succeed. The guides for a new country and a new operator must work in a copy of the tree.
//
// It contains only tests. Its invariant: a page that is wrong fails here, with its line.
package pages
