package main

// grant is one licence that dependencies may have.
type grant struct {
	Licence string // SPDX identifier
	Ships   bool   // also for what is linked into the deployed programs
	Why     string
}

// exception is one package that may be although its licence is not granted, or says nothing that can be read. It holds
// for what the package said when somebody looked: another text is asked about again.
type exception struct {
	Kind, Name, Says string
	Ships            bool // also where it ships
	Why              string
}

// How licences with conditions are kept. None of it reaches a deployed program, and none of it is passed on.
const (
	unchanged = "its own files stay under it: used unchanged, and passed on to nobody"
	apart     = "a program or a library of one, run unchanged beside ours, linked into nothing of ours, and passed on to nobody"
	anything  = "asks for nothing that a user of it would have to do"
)

// grants are all licences that are allowed.
var grants = []grant{
	{"Apache-2.0", true, "permissive, with a grant of patents: keep the notice"},
	{"BSD-2-Clause", true, "permissive: keep the notice"},
	{"BSD-3-Clause", true, "permissive: keep the notice"},
	{"ISC", true, "permissive: keep the notice"},
	{"MIT", true, "permissive: keep the notice"},

	{"0BSD", false, anything},
	{"CC0-1.0", false, anything},
	{"MIT-0", false, anything},
	{"Unlicense", false, anything},
	{"LicenseRef-Public-Domain", false, anything},
	{"LicenseRef-BSD", false, "a BSD licence that does not say how many clauses it has; all of them are permissive"},
	{"CNRI-Python", false, "permissive: Python's older licence, for parts of it"},
	{"OFL-1.1", false, "a font's: used inside a program, not sold by itself"},
	{"PSF-2.0", false, "permissive: Python's own"},
	{"Python-2.0", false, "permissive: Python's own with its older ones, for a library that was translated from it"},
	{"ZPL-2.1", false, "permissive: Zope's"},
	{"Zlib", false, "permissive: keep the notice"},
	{"EPL-2.0", false, unchanged},
	{"MPL-2.0", false, unchanged},
	{"GPL-3.0", false, apart},
	{"GPL-2.0-only WITH Classpath-exception-2.0", false, apart},
}

// exceptions are single packages. A row that nothing needs is refused too.
var exceptions = []exception{
	{"go", "standard library", "BSD-3-Clause AND ISC AND OpenSSL", true, "BSD-3-Clause; the others are of BoringCrypto, which no build of ours asks for"},
	{"go", "github.com/aws/aws-lambda-go", "unknown text LICENSE-LAMBDACODE b989d4f1eaf6", true, "Apache-2.0 by its LICENSE; this text is MIT-0, for functions that were copied from it"},

	{"go", "github.com/alecthomas/go-check-sumtype", "unknown text COPYING 01c266bced4a", false, "MIT or Unlicense, it says, and brings both"},
	{"go", "github.com/ashanbrown/forbidigo/v2", "unknown text LICENSE 756ce9fc8642", false, "Apache-2.0's notice, without the text"},
	{"go", "github.com/ashanbrown/makezero/v2", "unknown text LICENSE 756ce9fc8642", false, "Apache-2.0's notice, without the text"},
	{"go", "github.com/golangci/gofmt", "", false, "a copy of Go's own gofmt; its files say BSD-3-Clause, as Go's do"},

	{"maven", "software.amazon.dynamodb:DynamoDBLocal", "DynamoDB Local License Agreement", false, "allows use in development and tests, but not passing on: it is installed, and never committed"},

	{"python", "colorama", "", false, "BSD-3-Clause; for Windows alone, where nothing here is run"},
	{"python", "cookiecutter", "", false, "BSD-3-Clause by its LICENSE file"},
	{"python", "crontab", "GNU Library or Lesser General Public License (LGPL) AND GNU Lesser General Public License v2 (LGPLv2) AND GNU Lesser General Public License v3 (LGPLv3)", false, "a library of LocalStack: " + apart},
	{"python", "docutils", "LicenseRef-Public-Domain AND PSF-2.0 AND LicenseRef-BSD AND GNU General Public License (GPL)", false, "a library of the AWS CLI in LocalStack, the GPL for one file of an editor: " + apart},
	{"python", "text-unidecode", "Artistic License AND GNU General Public License (GPL) AND GNU General Public License v2 or later (GPLv2+)", false, "a library of the SAM CLI, either licence: " + apart},
}
