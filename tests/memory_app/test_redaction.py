"""What is a secret and what is not (DESIGN 6). Each line was decided by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_app.redaction import redact, redact_json

# The line, what must be gone, what must stay.
SECRETS = (
    ("db password is hunter2-xyz", "hunter2-xyz", "db password is"),
    ("key sk-test-000111222333", "000111222333", "key"),
    ("token 123456:AAfake", "AAfake", "token"),
    ("my password is swordfish", "swordfish", "my password"),
    ('the password is "open sesame", don\'t tell', "open sesame", "don't tell"),
    ("password: hunter2 for the NAS", "hunter2", "for the NAS"),
    ("Password = correct", "correct", "Password"),
    ("DB_PASSWORD=s3cr3t,really", "s3cr3t", "DB_PASSWORD="),
    ('{"user": "bo", "password": "Tr0ub4dor&3"}', "Tr0ub4dor", '"user": "bo"'),
    ("changed my password to Xk9!mm today", "Xk9!mm", "today"),
    ("passwd hunter2", "hunter2", "passwd"),
    ("pwd=abc", "abc", "pwd="),
    ("我的密码是hunter2啊", "hunter2", "啊"),
    ("密码：qwerty", "qwerty", "密码"),
    ("WiFi密码sunshine88，别忘了", "sunshine88", "别忘了"),
    ("登录密碼為 abc12345", "abc12345", "登录密碼"),
    ("パスワードは kumo1234 です", "kumo1234", "です"),
    ("비밀번호는 namu9876 입니다", "namu9876", "입니다"),
    ("пароль: kotik99", "kotik99", "пароль"),
    ("口令 zhima-2024!", "zhima-2024!", "口令"),
    ("my pin is 4471", "4471", "my pin"),
    ("PIN: 0815", "0815", "PIN"),
    ("验证码 483920，五分钟内有效", "483920", "五分钟内有效"),
    ("cvv 123", "123", "cvv"),
    ("export OPENAI_API_KEY=sk-proj-abcDEF123456ghiJKL", "abcDEF123456", "OPENAI_API_KEY"),
    ("sk-ant-api03-AbCdEf123456_xyz", "AbCdEf123456", ""),
    (
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI",
        "AWS_SECRET_ACCESS_KEY=",
    ),
    ("AKIAIOSFODNN7EXAMPLE is the id", "AKIAIOSFODNN7EXAMPLE", "is the id"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "292c6912", ""),
    ("glpat-abcdefghij0123456789", "abcdefghij", ""),
    ("xoxb-123456789012-abcdefGHIJ", "123456789012", ""),
    ("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "9tSrke72", ""),
    ("hf_abcdefghijABCDEFGHIJ12", "abcdefghij", ""),
    ("LTAI5tAbCdEfGhIjKlMn", "5tAbCdEf", ""),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
        "dozjgNryP4J3",
        "",
    ),
    ("api key: 9f8e7d6c5b4a", "9f8e7d6c5b4a", "api key"),
    ("密钥是 9f8e7d6c5b4a", "9f8e7d6c5b4a", "密钥"),
    ("client_secret=GOCSPX-1234abcd", "1234abcd", "client_secret"),
    ("access token 8d1f0c2e-7b1a-4c55-9e0e-2f6b6f3f1a10", "8d1f0c2e", "access token"),
    ("curl -H 'Authorization: Bearer abc123def456ghi'", "abc123def456", "curl"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA", "Authorization"),
    ("postgres://u:p@h/db", ":p@", "postgres://u:"),
    ("https://bo:p@ss!word@example.org/x", "p@ss!word", "example.org/x"),
    ("https://x.example/cb?token=abcdef123&page=2", "abcdef123", "page=2"),
    ("https://hooks.slack.com/services/T00/B00/XXXX", "T00/B00", ""),
    ("card 4111 1111 1111 1111 exp 12/30", "1111", "exp 12/30"),
    ("卡号6222021234567890128", "6222021234567890128", "卡号"),
    ("amex 378282246310005", "378282246310005", "amex"),
    ("5555-5555-5555-4444", "5555", ""),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----\nbye",
        "MIIEabc",
        "bye",
    ),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz cut off", "b3BlbnNz", ""),
    ("seed phrase: legal winner thank year wave", "legal winner", "seed phrase"),
    ("助记词：苹果 香蕉 樱桃", "香蕉", "助记词"),
)

KEPT = (
    "milk, eggs, call mum 138 0013 8000",
    "her number is +86 13800138000",
    "ring +1 (415) 555-2671 on Monday",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it",
    "ISBN 978-7-302-51145-7",
    "ISBN 9787302511457",
    "order 2031051000123456 arrives on Friday",
    "tracking SF1234567890123",
    "order id 8d1f0c2e-7b1a-4c55-9e0e-2f6b6f3f1a10",
    "IMEI 356938035643809",
    "身份证 440106199003071234",
    "QQ 1234567890，群 20001",
    "telegram:group:-1001234567890",
    "snowflake 175928847299117063",
    "the password is wrong",
    "the password is on the note under the keyboard",
    "password is required",
    "forgot my password",
    "a password manager would help",
    "passwords should be long",
    "password reset 2031-05-01",
    "change the password to something longer soon",
    "密码忘了",
    "密码箱在床底下",
    "密码是孩子的生日",
    "密码至少8位",
    "パスワードを忘れた",
    "비밀번호를 잊었다",
    "the key is under the mat",
    "key: C major",
    "keys in the blue bowl",
    "the monkey ate 12345678",
    "max tokens = 4096",
    "token limit is 128000",
    "tokens: 500",
    "the secret is to add salt",
    "secret santa on 2031-12-24",
    "pin the message to the board",
    "pin 3 messages",
    "basic understanding of physics",
    "a bearer of good news",
    "http://127.0.0.1:8000/@user/1",
    "https://user@example.org/path",
    "git@github.com:owner/repo.git",
    "ssh bo@example.org -p 2222",
    "version 4.111.1111",
    "4111 1111 1111 1112 fails the check",
    "born on 1990-03-07",
    "at 37.7749, -122.4194",
    "sk-8 is a bus line",
    "上海市浦东新区世纪大道100号",
    "likes oolong tea",
)


@pytest.mark.parametrize(("line", "secret", "rest"), SECRETS)
def test_it_masks_a_secret_and_keeps_the_meaning(line: str, secret: str, rest: str):
    found = redact(line)

    assert secret not in found.text
    assert rest in found.text
    assert found.kinds


@pytest.mark.parametrize("line", KEPT)
def test_it_keeps_what_people_want_remembered(line: str):
    assert redact(line).text == line
    assert redact(line).kinds == ()


@pytest.mark.parametrize(("line", "secret", "rest"), SECRETS)
def test_it_finds_nothing_more_in_what_it_masked(line: str, secret: str, rest: str):
    once = redact(line).text

    assert redact(once).text == once


def test_it_masks_every_secret_of_a_text():
    """A database password, a key and a token in one sentence, as somebody pasted them."""
    found = redact(
        "remember: db password is hunter2-xyz, key sk-test-000111222333, token 123456:AAfake"
    )

    assert found.text == (
        "remember: db password is [password removed], key [API key removed], token [token removed]"
    )
    assert found.kinds == ("token", "API key", "password")


def test_it_masks_inside_a_json_value():
    value = {"quote": ["my pin is 4471"], "turn": 7}

    assert redact_json(value) == {"quote": ["my pin is [PIN removed]"], "turn": 7}


@given(st.text(max_size=300))
def test_it_takes_any_text_and_changes_only_what_it_reports(text: str):
    found = redact(text)

    assert (found.text == text) == (found.kinds == ())
